"""From latents to raw RGB, twice if need be: a VAE in half precision gives black or undefined pictures for some inputs.

| first decoding | second, exact in float32 | result |
| --- | --- | --- |
| a picture | not run | the first |
| undefined pixels or one colour | a picture | the second, and said so |
| undefined pixels or one colour | the same again | BadOutput: never handed out as a picture |
"""

from typing import Any

from imageedit_server.engine.base import Device
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from imageedit_server.worker.shapes import Size

# Of 255, between the darkest and the brightest value of a channel. A white wall on a photograph has more.
_FLAT_SPREAD = 2


def picture_of(pipeline: Any, device: Device, latents: Any, size: Size) -> tuple[bytes, bool]:
    """Decode packed latents; return raw RGB, and whether that took the second try.

    Raises:
        WorkerError: BadOutput, when neither try gives a picture.
        ValueError: the model's output is not of this size.
    """
    first = decode(pipeline, latents, size)
    if fault_of(first) is None:
        return to_rgb(first, size), False
    second = _decode_exactly(pipeline, device, latents, size)
    fault = fault_of(second)
    if fault is None:
        return to_rgb(second, size), True
    message = f"the model gave {fault} twice, the second time decoded in float32; try another seed or picture"
    raise WorkerError(WorkerFailure(reason="BadOutput", message=message, sticky=False))


def decode(pipeline: Any, latents: Any, size: Size) -> Any:
    """Run the VAE as the stock pipeline does; return a `3 x height x width` tensor of 0..1 on the host."""
    import torch

    vae = pipeline.vae
    unpacked = pipeline._unpack_latents(latents, size.height_px, size.width_px, pipeline.vae_scale_factor)
    unpacked = unpacked.to(vae.dtype)

    def by_channel(values: Any) -> Any:
        return torch.tensor(values).view(1, vae.config.z_dim, 1, 1, 1).to(unpacked.device, unpacked.dtype)

    scaled = unpacked / (1.0 / by_channel(vae.config.latents_std)) + by_channel(vae.config.latents_mean)
    with torch.no_grad():
        decoded = vae.decode(scaled, return_dict=False)[0][:, :, 0]
    return pipeline.image_processor.postprocess(decoded, output_type="pt")[0].float().cpu()


def fault_of(image: Any) -> str | None:
    """Say what keeps a tensor of 0..1 from being a picture, if anything does."""
    if not bool(image.isfinite().all()):
        return "undefined pixels (NaN)"
    flat = image.flatten(1)
    if float((flat.amax(1) - flat.amin(1)).max()) * 255 <= _FLAT_SPREAD:
        return "a picture of one colour"
    return None


def to_rgb(image: Any, size: Size) -> bytes:
    """Turn a `3 x height x width` tensor of 0..1 into raw RGB."""
    if tuple(image.shape) != (3, size.height_px, size.width_px):
        raise ValueError(f"the model gave a picture of shape {tuple(image.shape)} for size {size}")
    rounded = image.mul(255).round().byte().permute(1, 2, 0).contiguous()
    return bytes(rounded.numpy().tobytes())


def _decode_exactly(pipeline: Any, device: Device, latents: Any, size: Size) -> Any:
    import torch

    dtype = pipeline.vae.dtype
    try:
        with device.exact():
            if dtype != torch.float32:
                pipeline.vae.to(torch.float32)
            return decode(pipeline, latents, size)
    finally:
        if pipeline.vae.dtype != dtype:
            pipeline.vae.to(dtype)
