"""Debian's Prometheus on the node's address, and the process that writes its targets from the API's pods."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from pathlib import Path

from localcluster import processes
from localcluster.addresses import CLUSTER_PORTS, NODE_ADDRESS
from localcluster.errors import LocalClusterError
from localcluster.hosttools import program
from localcluster.paths import Layout
from localcluster.processes import Record

SCRAPE_INTERVAL_S = 2.0


def url() -> str:
    """The same from the host and from pods."""
    return f"http://{NODE_ADDRESS}:{CLUSTER_PORTS.prometheus}"


def write_config(layout: Layout, *, scrape_interval_s: float) -> Path:
    """The configuration file (JSON, which Prometheus takes as YAML)."""
    if scrape_interval_s < 0.1:
        raise LocalClusterError(f"a scrape interval of {scrape_interval_s} s is too short: give 0.1 s or more")
    interval = f"{int(scrape_interval_s * 1000)}ms"
    pods = {"job_name": "pods", "file_sd_configs": [{"files": [str(layout.targets)], "refresh_interval": "5s"}]}
    config = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
        "scrape_configs": [pods],
    }
    file = layout.config / "prometheus.yml"
    file.write_text(json.dumps(config))
    return file


def start(layout: Layout, *, scrape_interval_s: float) -> list[Record]:
    """Start Prometheus and the discovery process."""
    config = write_config(layout, scrape_interval_s=scrape_interval_s)
    layout.targets.write_text("[]")
    argv = [
        program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={layout.root / 'prometheus'}",
        "--storage.tsdb.retention.time=1d",
        f"--web.listen-address={NODE_ADDRESS}:{CLUSTER_PORTS.prometheus}",
        "--log.level=warn",
    ]
    return [
        processes.start("prometheus", argv, pids=layout.pids, logs=layout.logs),
        processes.start_python(
            "pod-targets",
            "localcluster.pod_targets",
            (str(layout.root), str(layout.targets)),
            pids=layout.pids,
            logs=layout.logs,
        ),
    ]


def set_scrape_interval(layout: Layout, seconds: float) -> None:
    """Another scrape interval for the Prometheus that runs."""
    write_config(layout, scrape_interval_s=seconds)
    for record in processes.recorded(layout.pids):
        if record.name == "prometheus":
            processes.send(record, signal.SIGHUP)


def ready() -> bool:
    """Whether Prometheus answers queries."""
    try:
        with urllib.request.urlopen(f"{url()}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
