"""The demo: an invented organisation with thirty days of history, and the launcher that runs it all on this machine."""
