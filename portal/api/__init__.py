"""The API: the same services as behind the pages, for programs."""
