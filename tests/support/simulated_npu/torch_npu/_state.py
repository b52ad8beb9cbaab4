"""What the simulated card is doing: its memory, its faults, and what waits for the next synchronisation."""

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

import torch

_MIB = 1024**2
_MEANINGS = {
    107020: "Stream synchronize timeout.",
    207001: "Failed to allocate memory (EL0004: alloc device memory failed).",
    507011: "The model execution fails.",
    507014: "The aicore execution times out.",
    507015: "The aicore execution is abnormal.",
    507035: "The vector core execution is abnormal.",
    507899: "An internal error occurs in the Driver module.",
}


@dataclass(kw_only=True)
class Card:
    """One card. `dead` is the error that every call raises from now on, `pending` the one that waits."""

    capacity_bytes: int = 64 * 1024**3
    allocated_bytes: int = 0
    peak_bytes: int = 0
    operators: int = 0
    synchronisations: int = 0
    dead: Exception | None = None
    pending: Exception | None = None
    fault: dict[str, Any] | None = None
    fault_file: str = field(default_factory=lambda: os.environ.get("SIMULATED_NPU_FAULT", ""))

    def launch(self, name: str) -> None:
        """Note an operator, and fail where a fault says so."""
        self.operators += 1
        if self.dead is not None:
            raise self.dead
        if self.fault_file and self.fault is None and os.path.exists(self.fault_file):
            with open(self.fault_file, encoding="utf-8") as file:
                self.fault = json.load(file)
            os.unlink(self.fault_file)
        if self.fault is not None:
            self._obey(name)

    def _obey(self, name: str) -> None:
        assert self.fault is not None
        self.fault["after"] = self.fault.get("after", 1) - 1
        if self.fault["after"] > 0:
            return
        fault, self.fault = self.fault, None
        if "hang_s" in fault:
            time.sleep(fault["hang_s"])
            return
        error = out_of_memory(self, 2 * 1024**3) if fault.get("out_of_memory") else runtime_error(fault["code"], name)
        if fault.get("sticky"):
            self.dead = error
        if fault.get("later"):
            self.pending = error
            return
        raise error

    def synchronize(self) -> None:
        """Wait for the card: errors that were late come up here."""
        self.synchronisations += 1
        pending, self.pending = self.pending, None
        if pending is not None:
            raise pending
        if self.dead is not None:
            raise self.dead

    def reserve(self, size_bytes: int) -> None:
        """Take memory.

        Raises:
            torch.OutOfMemoryError: there is not that much.
        """
        if self.allocated_bytes + size_bytes > self.capacity_bytes:
            raise out_of_memory(self, size_bytes)
        self.allocated_bytes += size_bytes
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)

    def free(self, size_bytes: int) -> None:
        """Give memory back."""
        self.allocated_bytes -= size_bytes


CARD = Card()


def runtime_error(code: int, name: str) -> RuntimeError:
    """The text that torch_npu makes of an error of the runtime."""
    operator = name.rsplit("::", maxsplit=1)[-1].split(".", maxsplit=1)[0].strip("_")
    now = time.strftime("%Y-%m-%d-%H:%M:%S")
    return RuntimeError(
        f"operator():compiler_depend.ts:32 NPU function error: call aclnn{operator.capitalize()} failed, "
        f"error code is {code}\n"
        f"[ERROR] {now} (PID:{os.getpid()}, Device:0, RankID:-1) ERR00100 PTA call acl api failed\n"
        f"[Error]: {_MEANINGS.get(code, '')}\n"
        "        Rectify the fault based on the error information in the ascend log.\nEZ9999: Inner Error!"
    )


def out_of_memory(card: Card, size_bytes: int) -> torch.OutOfMemoryError:
    """The text that torch_npu's allocator writes."""
    return torch.OutOfMemoryError(
        f"NPU out of memory. Tried to allocate {size_bytes / _MIB:.2f} MiB (NPU 0; "
        f"{card.capacity_bytes / _MIB:.2f} MiB total capacity; {card.allocated_bytes / _MIB:.2f} MiB already allocated)"
    )
