"""What builds, tests and judges the project. Nothing here runs in production."""
