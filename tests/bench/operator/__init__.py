"""What the operator costs and how fast it is with 1,000 resources; `python -m bench.operator`."""
