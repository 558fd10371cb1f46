"""The pages: a module per word in the menu. A view fetches with permission, calls one service, answers."""
