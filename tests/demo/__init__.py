"""`make demo`: the whole system on this machine, step by step, left running."""
