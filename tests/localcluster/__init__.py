"""A real one-node Kubernetes with simulated NPU cards on this machine; see README.md."""
