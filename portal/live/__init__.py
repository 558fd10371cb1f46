"""The sockets of open pages: whoever may see a thing is told when it changes."""
