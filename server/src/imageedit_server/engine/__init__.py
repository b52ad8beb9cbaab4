"""The only place that imports torch, diffusers and transformers; used inside the worker process."""
