"""The safety hook: a list of words against prompts, and a classifier against pictures. Off unless set."""
