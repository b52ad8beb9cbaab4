"""What `imageedit-server` does besides serving: one module for each word after it."""
