"""Which engine and which device the settings ask for."""

from imageedit_server.engine.base import Device, EditEngine
from imageedit_server.engine.checkpoint import resolve_model_dir
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from imageedit_server.worker.protocol import EngineSettings


def build_engine(settings: EngineSettings) -> EditEngine:
    """Make the engine; torch is imported only by its `load`.

    Raises:
        WorkerError: no such device.
    """
    model_dir = resolve_model_dir(settings.model_dir)
    if settings.stub_edit_s is not None:
        from imageedit_server.engine.stub import StubEngine

        return StubEngine(
            model_dir=model_dir,
            edit_s=settings.stub_edit_s,
            load_s=settings.stub_load_s,
            steps=settings.steps,
            max_references=settings.max_references,
            negative_prompt=settings.warm_cfg,
            expected_digest=settings.manifest_digest,
        )
    from imageedit_server.engine.pipeline import PipelineEngine

    return PipelineEngine(
        model_dir=model_dir,
        device=device_named(settings.device),
        max_references=settings.max_references,
        negative_prompt=settings.warm_cfg,
        expected_digest=settings.manifest_digest,
    )


def device_named(name: str) -> Device:
    """The device of that name, not opened yet.

    Raises:
        WorkerError: no such device.
    """
    if name == "cpu":
        from imageedit_server.engine.devices.cpu import CpuDevice

        return CpuDevice()
    if name == "npu":
        from imageedit_server.engine.devices.npu import NpuDevice

        return NpuDevice()
    raise WorkerError(
        WorkerFailure(
            reason="DeviceUnavailable",
            message=f"device {name!r} is unknown; use npu or cpu",
            sticky=True,
        )
    )
