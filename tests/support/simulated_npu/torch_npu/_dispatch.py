"""Every operator of the card: the processor's kernel on the same memory, after the checks that a card makes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ._memory import is_on_card, on_host, to_card
from ._state import CARD

_aten: Any = torch.ops.aten
_Library: Any = torch.library.Library
_PROCESSOR = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_HOST_INDEX_TYPES = (torch.int64, torch.int32, torch.bool, torch.uint8)
# Their indices may come from the host.
_INDEXING = ("aten::index", "aten::_index_put_impl_", "aten::_unsafe_index")
# Their result has a size or a value that depends on data: the card has to be waited for.
_WAITING = (
    *("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::_unique2"),
    *("aten::unique_dim", "aten::unique_consecutive", "aten::repeat_interleave.Tensor", "aten::bincount"),
)


class _Operator(NamedTuple):
    name: str
    gives_view: bool


_operators: dict[Any, _Operator] = {}
_libraries: list[Any] = []  # a library that is collected takes its kernels with it


def install() -> None:
    """Register the kernels."""
    everything = _Library("_", "IMPL")
    everything.fallback(run, "PrivateUse1")
    everything.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    aten = _Library("aten", "IMPL")
    for name, kernel in _OWN_KERNELS.items():
        aten.impl(name, kernel, "PrivateUse1")
    for name, operator in _composite_operators():
        aten.impl(name, _bound(operator), "PrivateUse1")
    _libraries.extend((everything, aten))


def run(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """Run one operator: check the devices, run on the host's views, hand the results out as tensors of the card."""
    described = _describe(operator)
    _check_devices(described.name, list(_tensors((args, list(kwargs.values())))), args)
    if described.gives_view:
        return operator.redispatch(_PROCESSOR, *args, **kwargs)
    CARD.launch(described.name)
    lent: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    host_args = [_lend(value, lent) for value in args]
    host_kwargs = {name: _lend(value, lent) for name, value in kwargs.items()}
    if described.name in _WAITING:
        CARD.synchronize()
    result = operator(*host_args, **host_kwargs)
    for original, view in lent.values():
        if view.shape != original.shape:  # an `out=` that was resized
            _aten.set_.source_Tensor.redispatch(_PROCESSOR, original, to_card(view.clone()))
    return _returned(result, lent)


def run_kernel(name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run an operator of torch_npu itself, given as a function of tensors on the host."""
    _check_devices(name, list(_tensors((list(args), list(kwargs.values())))), ())
    CARD.launch(name)
    lent: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    host_kwargs = {key: _lend(value, lent) for key, value in kwargs.items()}
    return _returned(function(*(_lend(value, lent) for value in args), **host_kwargs), lent)


def _describe(operator: Any) -> _Operator:
    if operator not in _operators:
        schema = operator._schema
        name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        _operators[operator] = _Operator(name=name, gives_view=_gives_view(schema))
    return _operators[operator]


def _gives_view(schema: Any) -> bool:
    return any(value.alias_info is not None and not value.alias_info.is_write for value in schema.returns)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _check_devices(name: str, tensors: Sequence[torch.Tensor], args: Sequence[Any]) -> None:
    """Only scalars and indices may come from the host."""
    for tensor in tensors:
        if is_on_card(tensor) or (tensor.dim() == 0 and tensor.device.type == "cpu"):
            continue
        is_index = name.startswith(_INDEXING) and tensor is not args[0] and tensor.dtype in _HOST_INDEX_TYPES
        if not is_index:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"npu:0 and {tensor.device}! (when checking argument for method {name})"
            )


def _lend(value: Any, lent: dict[int, tuple[torch.Tensor, torch.Tensor]]) -> Any:
    if isinstance(value, torch.Tensor) and is_on_card(value):
        view = on_host(value)
        lent[id(view)] = (value, view)
        return view
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(_lend(part, lent) for part in value)
    if isinstance(value, torch.device) and value.type == "npu":
        return torch.device("cpu")
    return value


def _returned(value: Any, lent: Mapping[int, tuple[torch.Tensor, torch.Tensor]]) -> Any:
    if isinstance(value, torch.Tensor):
        return lent[id(value)][0] if id(value) in lent else to_card(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_returned(part, lent) for part in value)
    return value


def _composite_operators() -> Iterator[tuple[str, Any]]:
    """Operators that would else be split into several: a card runs them as one."""
    for qualified in torch._C._dispatch_get_all_op_names():
        if not qualified.startswith("aten::") or not all(
            torch._C._dispatch_has_kernel_for_dispatch_key(qualified, key)
            for key in ("CompositeExplicitAutogradNonFunctional", "CPU")
        ):
            continue
        name, _, overload = qualified[6:].partition(".")
        operator = getattr(getattr(_aten, name), overload or "default")
        if not _gives_view(operator._schema):
            yield qualified[6:], operator


def _bound(operator: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: run(operator, *args, **kwargs)


def _empty(size: Any, dtype: Any = None, *others: Any, memory_format: Any = None, **ignored: Any) -> torch.Tensor:
    del others, ignored
    options = {} if memory_format is None else {"memory_format": memory_format}
    return to_card(torch.empty(size, dtype=dtype, device="cpu", **options))


def _empty_strided(size: Any, stride: Any, dtype: Any = None, *others: Any, **ignored: Any) -> torch.Tensor:
    del others, ignored
    return to_card(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    CARD.launch("aten::_copy_from")
    if not non_blocking and is_on_card(source) != is_on_card(target):
        CARD.synchronize()
    host = on_host(target) if is_on_card(target) else target
    host.copy_(on_host(source) if is_on_card(source) else source)
    return target


def _copy_from_and_resize(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    if target.shape != source.shape:
        target.resize_(source.shape)
    return _copy_from(source, target)


def _to_copy(tensor: torch.Tensor, **options: Any) -> torch.Tensor:
    # A copy without waiting would ask for pinned memory, which there is none of.
    return _aten._to_copy.default.redispatch(_PROCESSOR, tensor, **{**options, "non_blocking": False})  # type: ignore[no-any-return]


def _resize(tensor: torch.Tensor, size: Sequence[int], memory_format: Any = None) -> torch.Tensor:
    del memory_format
    larger = torch.empty(size, dtype=tensor.dtype)
    kept = min(tensor.numel(), larger.numel())
    larger.view(-1)[:kept].copy_(on_host(tensor).reshape(-1)[:kept])
    _aten.set_.source_Tensor.redispatch(_PROCESSOR, tensor, to_card(larger))
    return tensor


def _set_tensor(tensor: torch.Tensor, *args: Any) -> Any:
    return _aten.set_.source_Tensor.redispatch(_PROCESSOR, tensor, *args)


def _set_storage(tensor: torch.Tensor, storage: Any) -> Any:
    count = storage.nbytes() // tensor.element_size()
    return _aten.set_.source_Storage_storage_offset.redispatch(_PROCESSOR, tensor, storage, 0, [count], [1])


def _set_storage_at(tensor: torch.Tensor, *args: Any) -> Any:
    return _aten.set_.source_Storage_storage_offset.redispatch(_PROCESSOR, tensor, *args)


def _convolution(*args: Any) -> Any:
    return run(_aten.convolution.default, *args)


_OWN_KERNELS: dict[str, Callable[..., Any]] = {
    "empty.memory_format": _empty,
    "empty_strided": _empty_strided,
    "_copy_from": _copy_from,
    "_copy_from_and_resize": _copy_from_and_resize,
    "_to_copy": _to_copy,
    "resize_": _resize,
    "set_.source_Tensor": _set_tensor,
    "set_.source_Storage": _set_storage,
    "set_.source_Storage_storage_offset": _set_storage_at,
    "convolution_overrideable": _convolution,
}
