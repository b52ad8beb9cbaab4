"""`python -m localcluster up|down|status|env|cards|card|prometheus`; see README.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from localcluster import cards, cluster, external, health, processes, prometheus
from localcluster.errors import LocalClusterError
from localcluster.paths import cluster_layout
from localcluster.progress import console


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    top = argparse.ArgumentParser(
        prog="python -m localcluster", description="a one-node Kubernetes with simulated NPU cards"
    )
    commands = top.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="bring the cluster up, or check the one that runs")
    up.add_argument("--cards", type=int, default=cluster.DEFAULT_CARDS, help="simulated cards (default %(default)s)")
    up.add_argument(
        "--scrape-interval",
        type=float,
        default=prometheus.SCRAPE_INTERVAL_S,
        help="seconds between scrapes (default %(default)s)",
    )
    commands.add_parser("down", help="remove the cluster and all its traces")
    commands.add_parser("status", help="what runs; exit code 0 when the cluster works")
    commands.add_parser("env", help="shell lines that set KUBECONFIG and PATH")
    count = commands.add_parser("cards", help="set the number of simulated cards, all healthy")
    count.add_argument("count", type=int)
    one = commands.add_parser("card", help="make one simulated card sick or well")
    one.add_argument("number", type=int)
    one.add_argument("health", choices=("healthy", "unhealthy"))
    commands.add_parser("prometheus", help="the URL of Prometheus")
    return top


def command_up(arguments: argparse.Namespace) -> int:
    running = cluster.up(cards=arguments.cards, scrape_interval_s=arguments.scrape_interval)
    print(f"kubeconfig  {running.kubeconfig}")
    print(f"kubectl     {running.kubectl}")
    print(f"helm        {running.helm}")
    print(f"prometheus  {running.prometheus_url or 'unknown: set IMAGEEDIT_PROMETHEUS_URL'}")
    return 0


def command_down(_arguments: argparse.Namespace) -> int:
    cluster.down()
    return 0


def command_status(_arguments: argparse.Namespace) -> int:
    if (file := external.kubeconfig()) is not None:
        print(f"the cluster of {file}: {external.describe(file).server}")
        return 0
    layout = cluster_layout()
    for record in processes.recorded(layout.pids):
        print(f"{record.name:<24} {record.pid:>8}  {'running' if processes.alive(record) else 'ended'}")
    works = health.healthy(layout)
    print(
        "the cluster works"
        if works
        else "no cluster"
        if not layout.root.exists()
        else "the cluster does not work: run up"
    )
    return 0 if works else 1


def command_env(_arguments: argparse.Namespace) -> int:
    running = cluster.describe(cluster_layout())
    print(f"export KUBECONFIG={running.kubeconfig}")
    print(f'export PATH="{running.kubectl.parent}:{running.helm.parent}:$PATH"')
    return 0


def command_cards(arguments: argparse.Namespace) -> int:
    print(cards.set_count(existing_cards(), arguments.count))
    return 0


def command_card(arguments: argparse.Namespace) -> int:
    print(cards.set_health(existing_cards(), arguments.number, healthy=arguments.health == "healthy"))
    return 0


def command_prometheus(_arguments: argparse.Namespace) -> int:
    print(prometheus.url())
    return 0


def existing_cards() -> Path:
    """The cards file of the cluster that runs; raises LocalClusterError when none does."""
    file = cluster_layout().cards
    if not file.exists():
        raise LocalClusterError("no cluster runs: start one with python -m localcluster up")
    return file


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "up": command_up,
    "down": command_down,
    "status": command_status,
    "env": command_env,
    "cards": command_cards,
    "card": command_card,
    "prometheus": command_prometheus,
}


def main() -> int:
    """Run one command; errors end in one line and exit code 1."""
    arguments = parser().parse_args()
    try:
        return COMMANDS[arguments.command](arguments)
    except LocalClusterError as error:
        console(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        console("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
