"""The queries of the chart's Grafana dashboard, as Prometheus takes them: variables replaced, one value per query."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DASHBOARD = Path(__file__).resolve().parents[2] / "helm" / "imageedit-operator" / "dashboards" / "imageedit.json"

EVERYTHING: Mapping[str, str] = {
    "namespace": ".*",
    "deployment": ".*",
    "__rate_interval": "1m",
    "__interval": "15s",
    "__range": "30m",
}
"""What Grafana would put in with every variable on All."""

METRIC = re.compile(r"\bimageedit_[a-z0-9_]+")
LABELS = re.compile(r"\{[^}]*\}|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
VARIABLE = re.compile(r"\$\{?([A-Za-z_]+)\}?")


@dataclass(frozen=True, kw_only=True, slots=True)
class PanelQuery:
    """One target of one panel."""

    panel: str
    ref: str
    expr: str
    """PromQL without Grafana variables."""

    def __str__(self) -> str:
        return f"{self.panel} [{self.ref}]"


def dashboard(path: Path = DASHBOARD) -> dict[str, Any]:
    """The dashboard's JSON."""
    return dict(json.loads(path.read_text()))


def panels(board: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every panel, rows included, and those inside collapsed rows."""
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def panel_queries(
    board: Mapping[str, Any] | None = None, variables: Mapping[str, str] = EVERYTHING
) -> list[PanelQuery]:
    """Every query with its variables replaced. Raises KeyError for a variable without a value."""
    return [
        PanelQuery(panel=panel["title"], ref=target["refId"], expr=substitute(target["expr"], variables))
        for panel in panels(board or dashboard())
        for target in panel.get("targets", [])
    ]


def substitute(expr: str, variables: Mapping[str, str]) -> str:
    """`$name` and `${name}` replaced by their values."""
    return VARIABLE.sub(lambda match: variables[match.group(1)], expr)


def metric_names(expr: str) -> set[str]:
    """The series that a query reads: labels and grouping do not count."""
    return set(METRIC.findall(LABELS.sub(" ", expr)))
