"""A device plugin that advertises simulated Ascend cards to the kubelet."""
