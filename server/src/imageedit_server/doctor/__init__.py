"""What `imageedit-server doctor` looks at before a server starts, and what it says about it."""
