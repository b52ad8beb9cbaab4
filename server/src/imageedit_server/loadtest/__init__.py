"""Load on a running service, and what it can bear: for users who look for their own plateau."""
