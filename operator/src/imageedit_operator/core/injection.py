"""How a pod gets at its card and at the driver's libraries, which live on the node.

Ascend nodes come in two kinds, and a manifest for one fails on the other: under the Ascend container
runtime devices and driver appear by themselves, and a driver folder that is mounted besides makes the
runtime's hook fail; under any other runtime the device plugin adds the devices, and nobody the driver.
Neither is visible from the apiserver where the runtime is the node's default, so nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.accelerator import DRIVER_ROOT, Accelerator

MANAGEMENT_LIBRARY = "/usr/local/dcmi"
INSTALL_INFO = "/etc/ascend_install.info"

Item = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Injection:
    """What the pod carries for it."""

    runtime_class: str = ""
    folders: tuple[tuple[Item, Item], ...] = ()
    """Each volume with its mount."""
    env: tuple[Item, ...] = ()
    privileged: bool = False


# | device | injection  | runtimeClassName | the operator's Auto | RuntimeClass          | driver folders | privileged |
# | cpu    | any        | any              | any                 | none                  | no             | no         |
# | npu    | Runtime    | named            | any                 | that one              | no             | no         |
# | npu    | Runtime    | none             | any                 | the operator's or none| no             | no         |
# | npu    | Plugin     | none             | any                 | none                  | yes            | no         |
# | npu    | Privileged | none             | any                 | none                  | yes            | yes        |
# | npu    | DRA        | none             | any                 | none                  | no             | no         |
# | npu    | Auto       | named            | any                 | that one              | no             | no         |
# | npu    | Auto       | none             | Runtime             | the operator's or none| no             | no         |
# | npu    | Auto       | none             | Plugin, Privileged  | as if it were given   |                |            |
# Which card it is stays the device plugin's to say: no row sets ASCEND_VISIBLE_DEVICES or ASCEND_RT_VISIBLE_DEVICES.
def injection(accelerator: Accelerator) -> Injection:
    """The row that fits."""
    if accelerator.device == "cpu":
        return Injection()
    way = _way(accelerator)
    if way == "DRA":  # the driver of the claim brings devices and libraries, through the container runtime's CDI
        return Injection()
    if way == "Runtime":
        return Injection(runtime_class=accelerator.runtime_class or accelerator.auto.runtime_class)
    return Injection(
        folders=_driver_folders(accelerator.driver_root),
        env=_driver_path(accelerator.driver_root),
        privileged=way == "Privileged",
    )


def _way(accelerator: Accelerator) -> str:
    if accelerator.injection != "Auto":
        return accelerator.injection
    return "Runtime" if accelerator.runtime_class else accelerator.auto.injection


def _driver_folders(root: str) -> tuple[tuple[Item, Item], ...]:
    """With exact types: a node that lacks one says so in an event instead of mounting an empty folder in its place."""
    return (
        _from_node("ascend-driver", root, "Directory"),
        _from_node("ascend-dcmi", MANAGEMENT_LIBRARY, "Directory"),
        _from_node("ascend-install-info", INSTALL_INFO, "File"),
    )


def _from_node(name: str, path: str, kind: str) -> tuple[Item, Item]:
    """The same path on both sides: the libraries name each other by it."""
    return {"name": name, "hostPath": {"path": path, "type": kind}}, {"name": name, "mountPath": path, "readOnly": True}


def _driver_path(root: str) -> tuple[Item, ...]:
    """CANN images search the usual place by themselves, and the entrypoint adds the toolkit to what it finds here."""
    if root == DRIVER_ROOT:
        return ()
    return ({"name": "LD_LIBRARY_PATH", "value": f"{root}/lib64/common:{root}/lib64/driver"},)
