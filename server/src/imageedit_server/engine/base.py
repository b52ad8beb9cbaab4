"""What the worker loop needs from an engine, and what an engine needs from a device."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from imageedit_server.worker.protocol import EditJob, EditResult, LoadReport

OnStep = Callable[[int, int], None]
"""Called after each denoising step with its number, from 1, and the number of steps."""


class EditEngine(Protocol):
    """Edits pictures with one model, from one thread."""

    def load(self) -> LoadReport:
        """Open the device and load the model.

        Raises:
            WorkerError: the model or the device cannot be used.
        """

    def edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        """Run one edit to its end; whatever it raises is classified by `faults.classify`."""

    def release_memory(self) -> None:
        """Give back what a failed edit left behind."""

    def close(self) -> None:
        """Let go of the model."""


class Device(Protocol):
    """One kind of device. torch types are `Any` here, so that importing this module stays cheap."""

    def open(self) -> None:
        """Import what the device needs and make it current for this thread.

        Raises:
            WorkerError: with the reason DeviceUnavailable and what to check.
        """

    def weights_dtype(self) -> Any:
        """The dtype of `from_pretrained`, one for all parts or a mapping by part."""

    def place(self, pipeline: Any) -> None:
        """Move a loaded pipeline to the device and choose its kernels."""

    def exact(self) -> AbstractContextManager[None]:
        """Within it, float32 means float32: no faster format inside convolutions."""

    def synchronize(self) -> None:
        """Wait for all work; errors of asynchronous kernels surface here."""

    def release_memory(self) -> None:
        """Return cached memory to the device."""
