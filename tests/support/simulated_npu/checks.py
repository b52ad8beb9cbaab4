"""What the simulated card promises, each in a function; run as a program it prints `{"name": error or null}`.

In a process of its own, because importing torch_npu changes torch and diffusers for good.
"""

import gc
import json
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_npu

CARD: Any = torch_npu.CARD
npu: Any = torch_npu.npu


def raises(call: Callable[[], Any], said: str) -> None:
    """Assert that a call fails with these words."""
    with pytest.raises(RuntimeError, match=re.escape(said)):
        call()


def check_results_are_those_of_the_processor() -> None:
    host = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(1))
    weight = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(2))
    card = torch.nn.functional.conv2d(host[None].to("npu"), weight.to("npu")).softmax(-1)
    assert card.device.type == "npu"
    assert torch.allclose(card.cpu(), torch.nn.functional.conv2d(host[None], weight).softmax(-1), atol=1e-6)


def check_views_share_their_memory() -> None:
    whole = torch.zeros(4, 4, device="npu")
    whole[1].view(2, 2).add_(3)
    assert whole.sum().item() == 12


def check_tensors_of_two_devices_do_not_mix() -> None:
    card, host = torch.ones(4, 4, device="npu"), torch.ones(4, 4)
    raises(lambda: card + host, "at least two devices")
    raises(lambda: card @ host, "at least two devices")
    raises(lambda: torch.cat([card, host]), "at least two devices")
    raises(lambda: torch.nn.functional.linear(card, host), "at least two devices")
    assert (card + torch.tensor(1.0)).sum().item() == 32  # a scalar may come from the host


def check_memory_is_counted_and_given_back() -> None:
    before = npu.memory_allocated()
    tensor = torch.zeros(1024, 1024, device="npu")
    assert npu.memory_allocated() - before == 4 * 1024**2
    del tensor
    gc.collect()
    assert npu.memory_allocated() == before


def check_memory_runs_out() -> None:
    capacity, CARD.capacity_bytes = CARD.capacity_bytes, CARD.allocated_bytes + 1024
    try:
        raises(lambda: torch.zeros(1024, device="npu"), "NPU out of memory. Tried to allocate")
        assert torch.zeros(64, device="npu").sum().item() == 0
    finally:
        CARD.capacity_bytes = capacity


def check_a_fault_comes_once() -> None:
    CARD.fault = {"code": 507035, "after": 2}
    ones = torch.ones(4, device="npu")
    raises(lambda: ones + 1 + 1, "error code is 507035")
    assert (ones + 1).sum().item() == 8


def check_a_late_fault_waits_for_the_synchronisation() -> None:
    ones = torch.ones(4, device="npu")
    CARD.fault = {"code": 507011, "later": True}
    later = ones + 1
    raises(npu.synchronize, "error code is 507011")
    assert later.sum().item() == 8


def check_a_sticky_fault_stays() -> None:
    ones = torch.ones(4, device="npu")
    CARD.fault = {"code": 507035, "sticky": True}
    raises(lambda: ones + 1, "507035")
    raises(lambda: ones + 1, "507035")
    raises(npu.synchronize, "507035")
    raises(npu.empty_cache, "507035")
    CARD.dead = None
    assert (ones + 1).sum().item() == 8


def check_reading_a_value_waits_for_the_card() -> None:
    ones, before = torch.ones(4, device="npu"), CARD.synchronisations
    total = ones.sum()
    assert CARD.synchronisations == before
    total.item()
    assert CARD.synchronisations == before + 1


def check_fused_attention_is_plain_attention_and_takes_half_precision_only() -> None:
    query = torch.randn(1, 5, 2, 16).bfloat16()
    fused = torch_npu.npu_fusion_attention(*(3 * (query.to("npu"),)), 2, "BSND", scale=0.25)[0].cpu()
    first = query.transpose(1, 2)
    plain = torch.nn.functional.scaled_dot_product_attention(first, first, first, scale=0.25).transpose(1, 2)
    assert torch.equal(fused, plain)
    exact = query.float().to("npu")
    raises(lambda: torch_npu.npu_fusion_attention(exact, exact, exact, 2, "BSND"), "161002")


def check_the_engine_puts_each_part_in_its_precision_on_the_card() -> None:
    from imageedit_server.engine.checkpoint import resolve_model_dir
    from imageedit_server.engine.devices.npu import NpuDevice
    from imageedit_server.engine.pipeline import PipelineEngine

    engine = PipelineEngine(model_dir=resolve_model_dir("demo"), device=NpuDevice())
    engine.load()
    pipeline = engine._pipeline
    found = {
        name: {(weight.device.type, weight.dtype) for weight in getattr(pipeline, name).parameters()}
        for name in ("transformer", "text_encoder", "vae")
    }
    assert found == {
        "transformer": {("npu", torch.bfloat16)},
        "text_encoder": {("npu", torch.bfloat16)},
        "vae": {("npu", torch.float32)},
    }
    with engine._device.exact():
        assert not npu.conv.allow_hf32
    assert npu.conv.allow_hf32


def main() -> int:
    """Run every check."""
    torch.set_num_threads(1)
    results: dict[str, str | None] = {}
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            CARD.fault = CARD.dead = CARD.pending = None
            try:
                check()
                results[name] = None
            except Exception:
                results[name] = traceback.format_exc()
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
