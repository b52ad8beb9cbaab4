"""A stand-in for torch_npu: importing it makes the simulated device `npu` known to torch. See the README beside it."""

import sys

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from . import _api, _dispatch, _kernels
from ._state import CARD

__version__ = torch.__version__.partition("+")[0]
__all__ = ["CARD", "npu"]

npu = _api.module()
_setup_privateuseone_for_python_backend(rename="npu", backend_module=npu)
sys.modules["torch.npu"] = npu
_dispatch.install()
_kernels.install(globals())
torch.accelerator.synchronize = lambda device=None: CARD.synchronize()
