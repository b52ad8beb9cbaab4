"""`kubectl imageedit`: one module for each command; what they show is built by pure functions."""
