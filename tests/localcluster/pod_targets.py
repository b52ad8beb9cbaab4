"""Writes Prometheus targets from pods: `python -m localcluster.pod_targets <state folder> <targets file>`.

Debian builds Prometheus without its Kubernetes discovery. Pods that run and carry
`prometheus.io/scrape: "true"` become targets; `prometheus.io/port` and `prometheus.io/path` are obeyed.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from localcluster import controlplane
from localcluster.addresses import CLUSTER_PORTS, NODE_ADDRESS
from localcluster.api import Api
from localcluster.errors import LocalClusterError
from localcluster.paths import Layout

PODS = "/api/v1/pods"
QUIET_LIMIT_S = 60.0
"""A watch that says nothing for so long is begun anew with a list."""
RETRY_S = 0.5
Pod = Mapping[str, Any]


def target_of(pod: Pod) -> dict[str, Any] | None:
    """The scrape target of a pod, None when it has none.

    | phase Running and an address | scrape annotation | target |
    | --- | --- | --- |
    | no | any | none |
    | yes | missing or not "true" | none |
    | yes | "true" | address:port (annotation, else 80) and path (annotation, else /metrics) |
    """
    metadata, status = pod["metadata"], pod.get("status", {})
    annotations = metadata.get("annotations", {})
    address = status.get("podIP")
    if status.get("phase") != "Running" or not address or annotations.get("prometheus.io/scrape") != "true":
        return None
    labels = {
        "__metrics_path__": annotations.get("prometheus.io/path", "/metrics"),
        "namespace": metadata["namespace"],
        "pod": metadata["name"],
        "node": pod["spec"].get("nodeName", ""),
    }
    return {"targets": [f"{address}:{annotations.get('prometheus.io/port', '80')}"], "labels": labels}


def targets(pods: Iterable[Pod]) -> list[dict[str, Any]]:
    """All targets, in a steady order."""
    found = [target for target in map(target_of, pods) if target is not None]
    return sorted(found, key=lambda target: (target["labels"]["namespace"], target["labels"]["pod"]))


def follow(api: Api, file: Path) -> None:
    """List once, then keep the file true to the watch, until the watch ends."""
    listed = api.call("GET", PODS)
    pods = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
    write(file, targets(pods.values()))
    since = listed["metadata"]["resourceVersion"]
    for event in api.watch(f"{PODS}?watch=1&resourceVersion={since}"):
        pod = event["object"]
        if event["type"] == "ERROR":
            return
        if event["type"] == "DELETED":
            pods.pop(pod["metadata"]["uid"], None)
        else:
            pods[pod["metadata"]["uid"]] = pod
        write(file, targets(pods.values()))


def write(file: Path, wanted: list[dict[str, Any]]) -> None:
    """Replace the file when it differs; Prometheus notices by itself."""
    text = json.dumps(wanted, indent=1)
    if file.exists() and file.read_text() == text:
        return
    unfinished = file.with_name("targets.unfinished")
    unfinished.write_text(text)
    unfinished.replace(file)


def main(root: Path, file: Path) -> None:
    """Follow the pods until killed; whatever goes wrong is tried again."""
    url = f"https://{NODE_ADDRESS}:{CLUSTER_PORTS.api}"
    api = replace(controlplane.api_of(Layout(root=root), url), timeout_s=QUIET_LIMIT_S)
    while True:
        try:
            follow(api, file)
        except (LocalClusterError, OSError, http.client.HTTPException, ValueError) as error:
            print(f"pods cannot be followed: {error}", flush=True)
        time.sleep(RETRY_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
