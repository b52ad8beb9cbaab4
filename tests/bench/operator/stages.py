"""What kwok does to nodes and pods, as its configuration: a kubelet that never touches the warm gate.

kwok's own stages set every readiness gate. These leave the gate to the operator, and make a pod Ready
from its gate, as a kubelet does. Templates are Go's.
"""

from __future__ import annotations

import json
from typing import Any

from bench.operator.isolation import POD_RANGE
from imageedit_operator.kube.parsing import WARM_GATE

PLAYED = "bench.imageedit.dev/played"
"""Label of the nodes that kwok has."""
AT_ONCE = 16
READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'
WARM = f'.status.conditions.[] | select( .type == "{WARM_GATE}" ) | .status'

STARTS = """
{{ $now := Now }}
{{ $uid := .metadata.uid }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
- type: Ready
  status: {{ if .spec.readinessGates }}"False"{{ else }}"True"{{ end }}
  lastTransitionTime: {{ $now | Quote }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  containerID: {{ printf "kwok://%s" $uid | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
{{ $ips := PodIPsWith .spec.nodeName false $uid .metadata.name .metadata.namespace }}
{{ with $ips }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
"""
WARMS = f'conditions:\n- {{type: {WARM_GATE}, status: "True", lastTransitionTime: {{{{ Now | Quote }}}}}}\n'
TURNS = 'conditions:\n- {type: Ready, status: "%s", lastTransitionTime: {{ Now | Quote }}}\n'


def configuration(*, warms: bool = False) -> str:
    """The whole file: options and stages, as JSON documents, which every YAML reader takes.

    With `warms` the gate of every pod that runs is opened, for worlds without an operator.
    """
    kwok = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {
            "manageNodesWithLabelSelector": f"{PLAYED}=true",
            "cidr": POD_RANGE,
            "nodeLeaseDurationSeconds": 0,  # nobody looks at leases here, and renewals would be load
            "podPlayStageParallelism": AT_ONCE,
            "nodePlayStageParallelism": AT_ONCE,
            "podsOnNodeSyncParallelism": AT_ONCE,
            "enableDebuggingHandlers": False,
        },
    }
    stages = [
        # Without a stage for nodes kwok would take no node for its own, and so none of their pods.
        _stage("node-runs", [_exists(".status.phase", yes=False)], "phase: Running", kind="Node"),
        _stage("pod-starts", [_is(".status.phase", "Pending"), _exists(".status.podIP", yes=False)], STARTS),
        _stage("pod-turns-ready", [_is(WARM, "True"), _is(READY, "False")], TURNS % "True"),
        _stage("pod-turns-unready", [_is(WARM, "False"), _is(READY, "True")], TURNS % "False"),
        _stage("pod-goes", [], None),
    ]
    if warms:
        stages.append(_stage("pod-warms", [_is(".status.phase", "Running"), _exists(WARM, yes=False)], WARMS))
    return "\n---\n".join(json.dumps(document) for document in (kwok, *stages))


def _stage(name: str, when: list[dict[str, Any]], status: str | None, *, kind: str = "Pod") -> dict[str, Any]:
    """A step that writes the status of living objects, or, without one, the end of deleted ones."""
    leaves = status is None
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": [_exists(".metadata.deletionTimestamp", yes=leaves), *when]},
            "next": {"delete": True} if leaves else {"statusTemplate": status},
        },
    }


def _is(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}


def _exists(key: str, *, yes: bool) -> dict[str, Any]:
    return {"key": key, "operator": "Exists" if yes else "DoesNotExist"}
