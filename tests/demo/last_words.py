"""What the demo says when all went well: how the resource stands, and how to go on with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from demo import shell
from demo.steps import Steps
from support.kubectl import Kubectl
from support.load import Tally
from support.system import DEMO_NAME as NAME
from support.system import DEMO_NAMESPACE as NAMESPACE
from support.system import ROOT

OPERATOR = ROOT / "operator" / "src"
PLUGIN = (sys.executable, "-m", "imageedit_operator.cli")


def plugin_status(kubectl: Kubectl) -> str:
    """What `kubectl imageedit status` prints; its words also where it fails, for the demo has shown all by then."""
    done = subprocess.run(
        [*PLUGIN, "status", NAME, "-n", NAMESPACE, "--kubeconfig", str(kubectl.kubeconfig)],
        env={**os.environ, "PYTHONPATH": str(OPERATOR)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return (done.stdout + done.stderr).rstrip()


def leave_for_a_shell(kubectl: Kubectl) -> Path:
    """The file that puts kubectl, the plugin and the login into a shell."""
    programs = shell.Programs(
        kubectl=kubectl.kubectl, helm=kubectl.helm, python=Path(sys.executable), operator=OPERATOR
    )
    login = json.loads(kubectl.run("config", "view", "--raw", "--flatten", "-o", "json"))
    return shell.leave(shell.FOLDER, programs, login=login, namespace=NAMESPACE)


def print_end(steps: Steps, kubectl: Kubectl, *, prometheus_url: str, base_url: str, tally: Tally) -> None:
    """The status as it stands, and how to reach everything."""
    steps.say("\nstatus of the resource:")
    steps.say(plugin_status(kubectl))
    steps.say(kubectl.run("get", "ied,deployments,pods", "-n", NAMESPACE))
    steps.say(f"API:      {base_url}   (POST {base_url}/images/edits)")
    steps.say(f"page:     {base_url.removesuffix('/v1')}/")
    steps.say(f"metrics:  {prometheus_url}")
    env = leave_for_a_shell(kubectl).relative_to(ROOT)
    steps.say(f"shell:    . {env}   (then kubectl get ied, kubectl imageedit status: docs/kubectl-plugin.md)")
    file = (shell.FOLDER / f"{NAME}.yaml").relative_to(ROOT)
    steps.say(f"change:   edit {file}, kubectl imageedit plan -f {file}, kubectl apply -f {file}: docs/rollouts.md")
    steps.say("remove:   make demo-down")
    median = sorted(tally.seconds)[len(tally.seconds) // 2]
    steps.say(
        f"demo ok: {steps.total_s:.0f} s, {tally.answered} edits answered (median {median:.1f} s), "
        f"{tally.refused_total} refused, {tally.lost_total} lost"
    )
