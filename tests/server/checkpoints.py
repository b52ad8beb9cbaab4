"""Copies of the demo checkpoint that a test may damage, and a synthetic one of a few bytes."""

import json
import shutil
import struct
from pathlib import Path

from imageedit_server.engine.checkpoint import resolve_model_dir

TRANSFORMER = "transformer/diffusion_pytorch_model.safetensors"


def copy_of_demo(folder: Path) -> Path:
    """Copy the checkpoint inside the package."""
    return Path(shutil.copytree(resolve_model_dir("demo"), folder / "checkpoint"))


def tiny_checkpoint(folder: Path, *, class_name: str = "QwenImageEditPlusPipeline") -> Path:
    """Write the files of a checkpoint with one part and one tensor; it cannot be loaded."""
    root = folder / "tiny"
    part = root / "transformer"
    part.mkdir(parents=True)
    index = {"_class_name": class_name, "transformer": ["diffusers", "Any"], "optional": [None, None]}
    (root / "model_index.json").write_text(json.dumps(index))
    (part / "config.json").write_text("{}")
    (root / TRANSFORMER).write_bytes(safetensors_bytes())
    return root


def safetensors_bytes(*, values: bytes = b"\x01\x02\x03\x04") -> bytes:
    """Serialise one tensor of bytes."""
    tensor = {"dtype": "U8", "shape": [len(values)], "data_offsets": [0, len(values)]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "weight": tensor}).encode()
    return struct.pack("<Q", len(header)) + header + values


def demo_as(folder: Path, class_name: str) -> Path:
    """The demo checkpoint under another pipeline class, which runs its parts in another way.

    Only pictures of an edit have a processor. The weights were trained for QwenImageEditPlusPipeline, so what another
    class makes of them is a picture of the right size, and no more.
    """
    root = copy_of_demo(folder)
    path = root / "model_index.json"
    index = json.loads(path.read_text()) | {"_class_name": class_name}
    if class_name in ("QwenImagePipeline", "QwenImageInpaintPipeline"):
        del index["processor"]
        shutil.rmtree(root / "processor")
    path.write_text(json.dumps(index))
    return root
