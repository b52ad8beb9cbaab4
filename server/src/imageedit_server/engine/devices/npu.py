"""One Ascend card through torch_npu. Inside a pod it is always device 0: the device plugin hides the others."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from imageedit_server.engine.faults import describe
from imageedit_server.worker.failures import WorkerError, WorkerFailure

_INDEX = 0
_ATTENTION = "_native_npu"
_DRIVER_LIBRARY = "libascend_hal"

_NO_TORCH_NPU = "torch_npu cannot be imported; use an image with torch_npu and CANN"
_NO_DRIVER = (
    "the driver's libraries or CANN cannot be loaded; run the pod under the Ascend runtime "
    "(accelerator.runtimeClassName), or set accelerator.injection: Plugin where the device plugin adds the devices by "
    "itself; keep the image's entrypoint, which sources set_env.sh"
)
_NO_CARD = (
    "no card is visible; check that the pod asks for one (accelerator.resourceName), and that it runs under the Ascend "
    "runtime (accelerator.runtimeClassName), or set accelerator.injection: Plugin where the device plugin adds the "
    "devices by itself"
)


class NpuDevice:
    """bfloat16 weights, the VAE in float32: in bfloat16 some inputs decode to black."""

    def open(self) -> None:
        """Import torch_npu, choose prebuilt kernels and make the card current for this thread.

        Raises:
            WorkerError: DeviceUnavailable with what to check.
        """
        import torch

        try:
            import torch_npu  # noqa: F401
        except ImportError as error:
            cure = _NO_DRIVER if _DRIVER_LIBRARY in str(error) else _NO_TORCH_NPU
            raise _unavailable(cure, error) from error
        except (OSError, RuntimeError) as error:
            raise _unavailable(_NO_DRIVER, error) from error
        npu = _npu()
        if not npu.is_available():
            raise _unavailable(_NO_CARD, None)
        try:
            npu.set_compile_mode(jit_compile=False)  # before any operator: else the first run compiles for minutes
            npu.set_device(_INDEX)
            torch.ones(1, device=f"npu:{_INDEX}").add_(1)
            npu.synchronize()
        except RuntimeError as error:
            raise _unavailable("the card does not work; check its health with npu-smi on the node", error) from error

    def weights_dtype(self) -> Any:
        """bfloat16, but float32 for the VAE."""
        import torch

        return {"default": torch.bfloat16, "vae": torch.float32}

    def place(self, pipeline: Any) -> None:
        """Move the weights and choose the fused attention; diffusers falls back in silence, so look at what is set.

        Raises:
            WorkerError: DeviceUnavailable when another attention is active.
        """
        pipeline.to(f"npu:{_INDEX}")
        pipeline.transformer.set_attention_backend(_ATTENTION)
        active = {str(getattr(backend, "value", backend)) for backend in _attention_backends(pipeline.transformer)}
        if active != {_ATTENTION}:
            raise _unavailable(f"attention runs as {sorted(active)} instead of {_ATTENTION}; check torch_npu", None)

    @contextmanager
    def exact(self) -> Iterator[None]:
        """Switch HF32 off, which is on for convolutions unless told otherwise."""
        convolution = _npu().conv
        before = convolution.allow_hf32
        convolution.allow_hf32 = False
        try:
            yield
        finally:
            convolution.allow_hf32 = before

    def synchronize(self) -> None:
        """Wait for the card."""
        _npu().synchronize()

    def release_memory(self) -> None:
        """Return cached blocks; after a sticky fault this fails too, and the process ends anyway."""
        try:
            _npu().empty_cache()
        except RuntimeError:
            return


def _npu() -> Any:
    import torch

    return torch.npu  # type: ignore[attr-defined]


def _attention_backends(transformer: Any) -> list[object]:
    processors: list[Any] = [getattr(module, "processor", None) for module in transformer.modules()]
    return [processor._attention_backend for processor in processors if hasattr(processor, "_attention_backend")]


def _unavailable(message: str, error: BaseException | None) -> WorkerError:
    said = f" ({describe(error)})" if error is not None else ""
    return WorkerError(WorkerFailure(reason="DeviceUnavailable", message=message + said, sticky=True))
