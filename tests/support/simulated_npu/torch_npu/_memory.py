"""Host memory as tensors of the `npu` device, without a copy and without a compiler: by way of DLPack.

A block of memory belongs to the storage of its npu tensor and is freed with it. The DLPack deleter is not used for
that: it would run in the middle of an exception, which ctypes does not survive; callbacks of weak references do.
"""

import ctypes
import weakref
from collections import deque
from typing import Any

import torch

from ._state import CARD

_EXTENSION_DEVICE = 12  # kDLExtDev: what torch maps to PrivateUse1


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


class _Reference(weakref.ref[Any]):
    key: int


class _Block:
    """Memory of one storage, and everything that DLPack points to."""

    host: Any
    reference: _Reference

    def __init__(self, host: Any, size_bytes: int) -> None:
        self.host = host
        self.size_bytes = size_bytes
        self.managed = _Managed()
        self.shape: Any = None
        self.strides: Any = None


_blocks: dict[int, _Block] = {}
_graves: deque[_Block] = deque(maxlen=4096)  # torch looks at a struct once more after its tensor is gone
_data_types: dict[torch.dtype, tuple[int, int, int]] = {}


def to_card(host: torch.Tensor) -> torch.Tensor:
    """Turn a tensor of the processor, that nobody else uses, into one of the card."""
    host = host.resolve_conj().resolve_neg()
    if host.storage_offset() != 0:
        host = host.clone()
    storage = host.untyped_storage()
    CARD.reserve(storage.nbytes())
    block = _Block(storage, storage.nbytes())
    count = host.dim()
    block.shape = (ctypes.c_int64 * max(count, 1))(*host.shape)
    block.strides = (ctypes.c_int64 * max(count, 1))(*host.stride())
    tensor = block.managed.tensor
    tensor.data = storage.data_ptr()
    tensor.device.type, tensor.device.id = _EXTENSION_DEVICE, 0
    tensor.ndim, tensor.shape, tensor.strides, tensor.byte_offset = count, block.shape, block.strides, 0
    tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = _data_type(host.dtype)
    made: torch.Tensor = torch._C._from_dlpack(_capsule_new(ctypes.addressof(block.managed), b"dltensor", None))
    owner = made.untyped_storage()
    block.reference = _Reference(owner, _freed)
    block.reference.key = owner._cdata
    _blocks[owner._cdata] = block
    return made


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The processor's view of a card tensor's memory."""
    block = _blocks.get(tensor.untyped_storage()._cdata)
    if block is None:
        if tensor.numel():
            raise RuntimeError("simulated npu: a tensor with memory of unknown origin")
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    view = torch.empty(0, dtype=tensor.dtype)
    return view.set_(block.host, tensor.storage_offset(), tensor.shape, tensor.stride())


def is_on_card(tensor: torch.Tensor) -> bool:
    """Whether a tensor is on the card."""
    return tensor.device.type == "npu"


def _freed(reference: Any) -> None:
    block = _blocks.pop(reference.key, None)
    if block is not None:
        CARD.free(block.size_bytes)
        block.host = None
        _graves.append(block)


def _data_type(dtype: torch.dtype) -> tuple[int, int, int]:
    if dtype not in _data_types:
        capsule = torch._C._to_dlpack(torch.empty(1, dtype=dtype))
        pointer = ctypes.cast(_capsule_pointer(capsule, b"dltensor"), ctypes.POINTER(_Managed))
        found = pointer.contents.tensor.dtype
        _data_types[dtype] = (found.code, found.bits, found.lanes)
        torch._C._from_dlpack(capsule)  # takes the capsule over, and frees it
    return _data_types[dtype]
