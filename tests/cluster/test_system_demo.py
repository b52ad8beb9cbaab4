"""`make demo` itself, on the session's cluster: exit code 0 and its last line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from localcluster.cluster import Cluster
from support.kubectl import Kubectl
from support.resources import Resource
from support.system import DEMO_NAME, DEMO_NAMESPACE, ROOT, VALUES_OF_TESTS, install_operator

DEMO_TIMEOUT_S = 1300
"""More than the limits of the demo together, so that a failure comes with its words."""


@pytest.mark.timeout(DEMO_TIMEOUT_S + 60)
def test_the_demo_edits_scales_and_rolls_without_losing_a_request(
    cluster: Cluster, installed: None, kubectl: Kubectl
) -> None:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "demo"],
            cwd=ROOT,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=DEMO_TIMEOUT_S,
            check=False,
        )
    finally:
        Resource(kubectl, DEMO_NAME, DEMO_NAMESPACE).delete()
        install_operator(kubectl, values=VALUES_OF_TESTS)  # the demo has installed it with the chart's own values

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert done.stdout.strip().splitlines()[-1].startswith("demo ok:")
