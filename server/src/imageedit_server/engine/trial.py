"""A small computation on the device, run as a process of its own: drivers hang, and libraries end the process.

`python -m imageedit_server.engine.trial npu` prints one line of JSON: the fields of `doctor.facts.Trial`.
"""

import json
import sys
import time
from dataclasses import asdict
from typing import Any

from imageedit_server.doctor.facts import Trial
from imageedit_server.engine.faults import describe
from imageedit_server.engine.select import device_named
from imageedit_server.worker.failures import WorkerError

_SIDE = 512


def main(device: str) -> int:
    """Try the device and print what was found."""
    print(json.dumps(asdict(_trial(device))))
    return 0


def _trial(device: str) -> Trial:
    try:
        import torch
    except (ImportError, OSError) as error:
        return Trial(error=f"torch cannot be imported ({describe(error)}); install it again")
    try:
        device_named(device).open()
        return _computed(torch, device)
    except WorkerError as error:
        return Trial(error=error.failure.message)
    except RuntimeError as error:
        return Trial(error=f"the product of two matrices failed: {describe(error)}")


def _computed(torch: Any, device: str) -> Trial:
    dtype = torch.bfloat16 if device == "npu" else torch.float32
    twos = torch.full((_SIDE, _SIDE), 2.0, dtype=dtype, device=device)
    (twos @ twos).cpu()  # the first one loads kernels
    started_s = time.monotonic()
    product = (twos @ twos).float().cpu()
    matmul_s = time.monotonic() - started_s
    if not bool((product == 4.0 * _SIDE).all()):
        return Trial(error="the product of two matrices was wrong; take this card out of service and check it")
    if device != "npu":
        return Trial(matmul_s=matmul_s)
    free_bytes, total_bytes = torch.npu.mem_get_info()
    return Trial(
        device_name=str(torch.npu.get_device_name(0)),
        memory_free_bytes=int(free_bytes),
        memory_total_bytes=int(total_bytes),
        matmul_s=matmul_s,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
