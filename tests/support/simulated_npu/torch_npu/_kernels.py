"""The operators of torch_npu that diffusers calls when it finds the package."""

from collections.abc import Callable
from typing import Any

import torch

from ._dispatch import run_kernel

_Library: Any = torch.library.Library
_library = _Library("npu", "DEF")


def install(namespace: dict[str, Any]) -> None:
    """Define the operators and put them into a namespace."""
    for schema, function in _KERNELS.items():
        name = schema.partition("(")[0]
        _library.define(schema)
        _library.impl(name, _bound(f"npu::{name}", function), "PrivateUse1")
        namespace[name] = getattr(torch.ops.npu, name)


def _bound(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: run_kernel(name, function, args, kwargs)


def _rms_norm(tensor: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    exact = tensor.float()
    scale = torch.rsqrt(exact.pow(2).mean(-1, keepdim=True) + epsilon)
    return (exact * scale).to(tensor.dtype) * gamma, scale


def _fusion_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    head_num: int,
    input_layout: str,
    *,
    atten_mask: torch.Tensor | None = None,
    scale: float = 1.0,
    **others: Any,
) -> tuple[Any, ...]:
    del head_num, others
    if query.dtype not in (torch.float16, torch.bfloat16):
        raise RuntimeError(f"npu_fusion_attention: {query.dtype} is not supported, error code is 161002")
    if input_layout != "BSND":
        raise RuntimeError(f"npu_fusion_attention: layout {input_layout} is not simulated")
    heads_first = [tensor.transpose(1, 2) for tensor in (query, key, value)]
    mask = None if atten_mask is None else ~atten_mask.bool()
    result = torch.nn.functional.scaled_dot_product_attention(
        heads_first[0], heads_first[1], heads_first[2], attn_mask=mask, scale=scale
    )
    return result.transpose(1, 2).contiguous(), torch.empty(0), torch.empty(0), torch.empty(0), 0, 0, 0


_KERNELS: dict[str, Callable[..., Any]] = {
    "npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)": _rms_norm,
    "npu_fusion_attention(Tensor query, Tensor key, Tensor value, int head_num, str input_layout, *, Tensor? pse=None,"
    " Tensor? padding_mask=None, Tensor? atten_mask=None, float scale=1., float keep_prob=1.,"
    " int pre_tockens=2147483647, int next_tockens=2147483647, int inner_precise=0,"
    " int[]? prefix=None, int[]? actual_seq_qlen=None, int[]? actual_seq_kvlen=None,"
    " int sparse_mode=0, bool gen_mask_parallel=True, bool sync=False)"
    " -> (Tensor, Tensor, Tensor, Tensor, int, int, int)": _fusion_attention,
}
