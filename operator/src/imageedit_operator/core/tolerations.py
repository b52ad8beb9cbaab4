"""Which nodes pods may land on: Kubernetes' rules of node selectors, taints and tolerations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Toleration = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taint:
    """What keeps pods away that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where pods may land."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Toleration] = ()

    def takes(self, *, labels: Mapping[str, str], taints: Iterable[Taint]) -> bool:
        """Whether a node with these labels and taints is one of them."""
        return self.chooses(labels) and not self.repelled_by(taints)

    def chooses(self, labels: Mapping[str, str]) -> bool:
        """Whether a node has the labels that pods ask for."""
        return all(labels.get(name) == value for name, value in self.node_selector.items())

    def repelled_by(self, taints: Iterable[Taint]) -> tuple[Taint, ...]:
        """Of a node's taints, those that pods do not tolerate."""
        return tuple(taint for taint in taints if not any(tolerates(one, taint) for one in self.tolerations))


# | toleration                  | tolerates                       |
# | operator Exists, no key     | every taint                     |
# | operator Exists, a key      | taints of that key              |
# | operator Equal, or none     | taints of that key and value    |
# | with an effect              | of these only those of it       |
def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a pod with this toleration may land on a node with this taint."""
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator") == "Exists":
        return key in ("", taint.key)
    return bool(key == taint.key and (toleration.get("value") or "") == taint.value)
