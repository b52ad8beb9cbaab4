"""Where copies of the model are made before pods need them: `spec.model.prefetch` as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.fields import InvalidResource, absolute_path, mapping, text

KINDS = ("hostPath", "pvc")


@dataclass(frozen=True, kw_only=True, slots=True)
class Prefetch:
    """Exactly one of the kinds: a folder of each node, or one claim for all pods."""

    kind: str
    path: str = ""
    claim_name: str = ""

    def manifest(self) -> dict[str, Any]:
        """As it stands in a spec."""
        return {self.kind: {"path": self.path} if self.kind == "hostPath" else {"claimName": self.claim_name}}


def parse_prefetch(model: Mapping[str, Any]) -> Prefetch | None:
    """Typed values, None without the field; raises InvalidResource."""
    where = "spec.model.prefetch"
    if model.get("prefetch") is None:
        return None
    given = mapping(model, "prefetch", where)
    source = mapping(model, "source", "spec.model.source")
    kinds = [kind for kind in KINDS if given.get(kind) is not None]
    if len(kinds) != 1:
        raise InvalidResource(f"{where}: set exactly one of {' and '.join(KINDS)}")
    if source.get("demo") is not None:
        raise InvalidResource(f"{where}: the demo checkpoint lies inside the image; leave prefetch out")
    body = mapping(given, kinds[0], f"{where}.{kinds[0]}")
    if kinds[0] == "hostPath":
        field = f"{where}.hostPath.path"
        path = absolute_path(text(body, "path", field, limit=1024), field).rstrip("/")
        _check_outside(path, source, field)
        return Prefetch(kind="hostPath", path=path)
    claim = text(body, "claimName", f"{where}.pvc.claimName", limit=253)
    if claim == (source.get("pvc") or {}).get("claimName"):
        raise InvalidResource(f"{where}.pvc.claimName: {claim} is the source itself; name another claim")
    return Prefetch(kind="pvc", claim_name=claim)


def _check_outside(path: str, source: Mapping[str, Any], field: str) -> None:
    if not path:
        raise InvalidResource(f"{field}: name a folder, not the node's whole disk")
    model = str((source.get("hostPath") or {}).get("path", "")).rstrip("/")
    if model and f"{path}/".startswith(f"{model}/"):
        raise InvalidResource(f"{field}: {path} lies inside the source; name a folder outside of it")
