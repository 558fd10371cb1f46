"""What was promised, measured: a module for each bench, whose `bars()` measure their yardstick in the same run."""
