"""Small pods for the tests of the local cluster: a web server on a card, behind a readiness gate."""

from __future__ import annotations

from typing import Any

GATE = "imageedit.dev/warm"
PYTHON = "/opt/imageedit/venv/bin/python"
SERVE = """
import http.server, os
print("cards", os.environ.get("ASCEND_VISIBLE_DEVICES"), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"answered 1\\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""


def web_pod(name: str, namespace: str, *, cards: int = 1, gate: bool = False) -> dict[str, Any]:
    """A pod as strict as ours are: not root, no capability, a root file system that cannot be written."""
    container = {
        "name": "web",
        "image": "imageedit.local/python:dev",
        "imagePullPolicy": "Never",
        "args": ["-c", SERVE],
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {"limits": {"huawei.com/Ascend910": str(cards)}} if cards else {},
        "readinessProbe": {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1},
    }
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": "8000", "prometheus.io/path": "/metrics"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}, "annotations": annotations},
        "spec": {
            "readinessGates": [{"conditionType": GATE}] if gate else [],
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532},
            "containers": [container],
        },
    }


def web_service(namespace: str) -> dict[str, Any]:
    """A Service over the web pods."""
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": namespace}, "spec": spec}
