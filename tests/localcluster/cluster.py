"""Up, down and the description of the cluster: the package's front door."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcluster import (
    binaries,
    bringup,
    containers,
    controlplane,
    external,
    health,
    node,
    processes,
    prometheus,
    state,
    teardown,
)
from localcluster import cards as card_file
from localcluster.addresses import NODE_ADDRESS
from localcluster.errors import LocalClusterError
from localcluster.paths import CHECKOUT, Layout, cache_dir, cluster_layout
from localcluster.progress import Progress, console

DEFAULT_CARDS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A cluster that can be used, and where its parts are.

    `state_dir`, `audit_log` and `logs` are None and `prometheus_url` may be empty
    for a cluster that was not started here (`embedded` is False).
    """

    embedded: bool
    kubeconfig: Path
    kubectl: Path
    helm: Path
    prometheus_url: str
    node_address: str
    state_dir: Path | None
    audit_log: Path | None
    logs: Path | None

    def set_cards(self, count: int) -> None:
        """So many simulated cards, all healthy; shows in the node within seconds."""
        card_file.set_count(self._layout().cards, count)

    def set_card_health(self, card: int, *, healthy: bool) -> None:
        """One simulated card made sick or well."""
        card_file.set_health(self._layout().cards, card, healthy=healthy)

    @contextmanager
    def without(self, program: str) -> Iterator[None]:
        """The node without its kubelet or containerd, killed without warning; at the end it is back and well."""
        layout = self._layout()
        ended = processes.take_away(program, pids=layout.pids)
        try:
            yield
        finally:
            record = processes.bring_back(ended, pids=layout.pids, logs=layout.logs)
            if program == "containerd":
                containers.wait_ready(layout, record)
            node.wait_kubelet(layout, [record])

    def _layout(self) -> Layout:
        if self.state_dir is None:
            raise LocalClusterError(
                "the cluster of KUBECONFIG has no simulated cards: unset KUBECONFIG for the embedded one"
            )
        return Layout(root=self.state_dir)


def up(
    *,
    cards: int = DEFAULT_CARDS,
    progress: Progress = console,
    scrape_interval_s: float = prometheus.SCRAPE_INTERVAL_S,
) -> Cluster:
    """A running cluster with so many healthy cards: the one of KUBECONFIG, the one that runs, or a new one.

    Raises LocalClusterError with one line that says what to install or do.
    """
    if (kubeconfig := external.kubeconfig()) is not None:
        found = external.describe(kubeconfig)
        progress(f"using the cluster of {kubeconfig}: {found.server}")
        return Cluster(
            embedded=False,
            kubeconfig=kubeconfig,
            kubectl=found.kubectl,
            helm=found.helm,
            prometheus_url=found.prometheus_url,
            node_address=found.node_address,
            state_dir=None,
            audit_log=None,
            logs=None,
        )
    layout = cluster_layout()
    venv = Path(os.environ.get("IMAGEEDIT_VENV") or sys.prefix).absolute()
    with state.locked():
        if health.healthy(layout):
            require_same(layout, venv)
            card_file.set_count(layout.cards, cards)
            prometheus.set_scrape_interval(layout, scrape_interval_s)
            return describe(layout)
        if teardown.traces(layout):
            progress("removing what an earlier cluster left")
            bringup.require_root()
            teardown.tear_down(layout)
        bringup.build_up(layout, venv=venv, cards=cards, scrape_interval_s=scrape_interval_s, progress=progress)
    return describe(layout)


def down(*, progress: Progress = console) -> None:
    """Remove the cluster and all its traces; nothing to do for a cluster of KUBECONFIG."""
    if (kubeconfig := external.kubeconfig()) is not None:
        progress(f"KUBECONFIG is {kubeconfig}: that cluster is left alone")
        return
    layout = cluster_layout()
    with state.locked():
        controlplane.sweep(cache_dir() / "control-planes")
        if not teardown.traces(layout):
            progress("no cluster is there")
            return
        bringup.require_root()
        teardown.tear_down(layout)
    progress("the cluster is removed")


def describe(layout: Layout) -> Cluster:
    """The embedded cluster, whether it runs or not."""
    return Cluster(
        embedded=True,
        kubeconfig=layout.kubeconfig,
        kubectl=binaries.path_of("kubectl"),
        helm=binaries.path_of("helm"),
        prometheus_url=prometheus.url(),
        node_address=NODE_ADDRESS,
        state_dir=layout.root,
        audit_log=layout.audit_log,
        logs=layout.logs,
    )


def require_same(layout: Layout, venv: Path) -> None:
    """Raise LocalClusterError when the cluster that runs shows its pods other code than ours."""
    found = state.read(layout)
    if found is not None and (found.venv, found.checkout) != (str(venv), str(CHECKOUT)):
        raise LocalClusterError(
            f"the cluster that runs was started from {found.checkout} with {found.venv}: "
            f"take it down first (python -m localcluster down)"
        )
