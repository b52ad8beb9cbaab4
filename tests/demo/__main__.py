"""The demo: cluster, chart, resource, edit, scale, roll. Non-interactive; leaves everything running.

Ends with one line `demo ok: ...` and exit code 0, or with the relevant logs, the reason and exit code 1.
`make demo-down` removes what it left.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

from demo import editing, shell
from demo.ending import broken_off
from demo.last_words import print_end
from demo.rolling import Telling, growing, standing
from demo.steps import Steps
from localcluster import cluster as local
from localcluster import teardown
from localcluster.errors import LocalClusterError
from localcluster.paths import cluster_layout
from support.kubectl import CommandFailed, Kubectl, condition, is_current, wait_for
from support.load import Load, Tally
from support.system import DEMO_NAME as NAME
from support.system import DEMO_NAMESPACE as NAMESPACE
from support.system import ROOT, api_url, diagnosis, image_edit_deployment, install_operator

CARDS = 2
FIRST_REVISION, SECOND_REVISION = "2026-11-a", "2026-11-b"
CLIENTS = 6
"""Against a target of 2 a replica this asks for 3 replicas, which the two cards clamp to 2."""
START_LIMIT_S, ROLLOUT_LIMIT_S = 300.0, 600.0
"""Far more than on two idle cores: a machine that is busy with something else takes five times as long."""
LOAD_LIMIT_S = START_LIMIT_S + ROLLOUT_LIMIT_S


class DemoFailed(Exception):
    """A step did not give what it promised."""


def main() -> int:
    steps = Steps()
    kubectl: Kubectl | None = None
    try:
        with steps.step(f"a real one-node Kubernetes with {CARDS} simulated NPU cards"):
            running = local.up(cards=CARDS, progress=steps.note)
        kubectl = Kubectl(kubeconfig=running.kubeconfig, kubectl=running.kubectl, helm=running.helm)
        show(steps, kubectl, running)
    except KeyboardInterrupt:
        left = kubectl is not None or teardown.traces(cluster_layout())
        print(f"\n{broken_off(left=bool(left))}", flush=True)
        return 130
    except Exception as error:  # whatever went wrong: the reason, the logs, and an exit code
        expected = isinstance(error, LocalClusterError | CommandFailed | DemoFailed | TimeoutError)
        reason = f"demo failed: {error if expected else repr(error)}"
        print(f"\n{reason}", flush=True)
        if kubectl is not None:
            print(diagnosis(kubectl, NAMESPACE), flush=True)
            print(f"\n{reason}\nrun it again, or remove what it started: make demo-down", flush=True)
        return 1
    return 0


def show(steps: Steps, kubectl: Kubectl, running: local.Cluster) -> None:
    """All steps after the cluster is up."""
    with steps.step("the operator, from its chart"):
        install_operator(kubectl)
    with steps.step("one ImageEditDeployment"):
        start_over(kubectl)
        apply(kubectl, manifest(FIRST_REVISION, prometheus_url=running.prometheus_url))
        wait_for_ready(steps, kubectl)
        steps.note(status_line(kubectl))
    base_url = api_url(kubectl, NAME, NAMESPACE)
    picture = editing.draw_picture()
    with steps.step(f'an edit by the openai package: "{editing.PROMPT}"'):
        edit_and_check(steps, base_url, picture)
    second = manifest(SECOND_REVISION, prometheus_url=running.prometheus_url)
    tally = asyncio.run(scale_and_roll(steps, kubectl, base_url, picture, second))
    if tally.lost_total:
        raise DemoFailed(f"requests were lost: {tally}")
    print_end(steps, kubectl, prometheus_url=running.prometheus_url, base_url=base_url, tally=tally)


def manifest(revision: str, *, prometheus_url: str) -> dict[str, Any]:
    """The demo's resource: scales between one and two cards on its queue."""
    autoscaling = {
        "minReplicas": 1,
        "maxReplicas": CARDS,
        "policy": "QueueDepth",
        "queueDepth": {"targetPerReplica": 2},
        "metrics": {"prometheus": {"address": prometheus_url}, "maxAge": "30s"},
        "hold": "10m",
    }
    return image_edit_deployment(NAME, namespace=NAMESPACE, revision=revision, autoscaling=autoscaling)


def apply(kubectl: Kubectl, resource: dict[str, Any]) -> None:
    """As somebody with a file would, so that they can go on with it."""
    kubectl.run("apply", "-f", str(shell.write_manifest(shell.FOLDER, resource)))


def start_over(kubectl: Kubectl) -> None:
    """An earlier demo may have left a resource behind: begin from nothing, so that every step shows what it says."""
    if not kubectl.exists("namespace", NAMESPACE):
        kubectl.run("create", "namespace", NAMESPACE)
    kubectl.run("delete", "imageeditdeployment", NAME, "-n", NAMESPACE, "--ignore-not-found", "--wait=true")
    wait_for("the pods of an earlier demo to go", lambda: not pods(kubectl), timeout_s=120)


def edit_and_check(steps: Steps, base_url: str, picture: bytes) -> None:
    """One edit, saved beside its input, with the background's colour checked."""
    edited = editing.edit(base_url=base_url, model="qwen-image-edit-tiny", picture=picture)
    before = editing.save(shell.FOLDER, "before.png", picture)
    after = editing.save(shell.FOLDER, "after.png", edited.picture)
    steps.note(f"background {editing.corner_colour(picture)} -> {edited.background_rgb}, revision {edited.revision}")
    steps.note(f"{before.relative_to(ROOT)} and {after.relative_to(ROOT)}")
    if not edited.obeyed:
        raise DemoFailed(f"the background is {edited.background_rgb}, asked for {editing.WANTED_RGB}")


async def scale_and_roll(
    steps: Steps, kubectl: Kubectl, base_url: str, picture: bytes, second: dict[str, Any]
) -> Tally:
    """Load until the second replica serves, then a new revision under the same load."""
    load = Load(
        base_url=base_url,
        picture=picture,
        prompt=editing.PROMPT,
        model="qwen-image-edit-tiny",
        clients=CLIENTS,
        limit_s=LOAD_LIMIT_S,
    )
    async with load:
        with steps.step(f"load by {CLIENTS} clients until it scales from 1 to 2"):
            await asyncio.to_thread(wait_for_replicas, steps, kubectl, CARDS)
            steps.note(scaling_line(kubectl))
            steps.note(str(load.tally))
        with steps.step(f"a roll to revision {SECOND_REVISION} under that load, no card free"):
            apply(kubectl, second)
            await asyncio.to_thread(wait_for_rollout, steps, kubectl)
            steps.note(status_line(kubectl))
        before = load.tally.revisions[SECOND_REVISION]
        with steps.step("the new revision answers, the load ends"):
            await asyncio.to_thread(
                wait_for,
                "answers of the new revision",
                lambda: load.tally.revisions[SECOND_REVISION] > before,
                timeout_s=30,
            )
            await load.stop()
            steps.note(str(load.tally))
            steps.note(f"answers by revision {dict(load.tally.revisions)}")
    return load.tally


def wait_for_ready(steps: Steps, kubectl: Kubectl) -> None:
    """Until all pods serve; says what Progressing says on the way."""

    def words(resource: dict[str, Any]) -> str:
        return str(condition(resource, "Progressing")["message"])

    wait_and_tell(steps, kubectl, "condition Ready", words, is_ready, timeout_s=START_LIMIT_S)


def wait_for_replicas(steps: Steps, kubectl: Kubectl, wanted: int) -> None:
    """Until that many pods are ready, on the autoscaler's decision; says what it waits for on the way."""

    def reached(resource: dict[str, Any]) -> bool:
        status = resource.get("status", {})
        return int(status.get("desiredReplicas", 0)) == wanted and int(status.get("readyReplicas", 0)) == wanted

    def words(resource: dict[str, Any]) -> str:
        return growing(resource, wanted)

    wait_and_tell(steps, kubectl, f"{wanted} ready replicas", words, reached, timeout_s=START_LIMIT_S)


def wait_for_rollout(steps: Steps, kubectl: Kubectl) -> None:
    """Until everything is of the new revision; says each new message of Progressing, and each move, on the way."""
    said: list[str] = []

    def words(resource: dict[str, Any]) -> str:
        if not is_current(resource):  # before, old pods count as new
            return ""
        message = str(condition(resource, "Progressing")["message"])
        if message and message not in said:
            said.append(message)
            steps.note(f"Progressing: {message}")
        return standing(resource)

    wait_and_tell(steps, kubectl, "the rollout", words, is_ready, timeout_s=ROLLOUT_LIMIT_S)


def is_ready(resource: dict[str, Any]) -> bool:
    """The condition Ready is True for the present generation."""
    return is_current(resource) and bool(condition(resource, "Ready")["status"] == "True")


def wait_and_tell(
    steps: Steps,
    kubectl: Kubectl,
    what: str,
    words: Callable[[dict[str, Any]], str],
    reached: Callable[[dict[str, Any]], bool],
    *,
    timeout_s: float,
) -> None:
    """Until the resource is as it should be; says how it stands on the way, where there is something to say."""
    telling = Telling(steps.note, now=time.monotonic())

    def look() -> bool:
        resource = kubectl.get("imageeditdeployment", NAME, "-n", NAMESPACE)
        stands = words(resource)
        if stands:
            telling.tell(stands, now=time.monotonic())
        return reached(resource)

    wait_for(what, look, timeout_s=timeout_s)


def pods(kubectl: Kubectl) -> list[dict[str, Any]]:
    """The server pods of the demo."""
    return list(kubectl.get("pods", "-n", NAMESPACE, "-l", f"imageedit.dev/deployment={NAME}")["items"])


def status_line(kubectl: Kubectl) -> str:
    """What `kubectl get ied` prints, in one line."""
    return " | ".join(kubectl.run("get", "ied", NAME, "-n", NAMESPACE).strip().splitlines()[-1].split())


def scaling_line(kubectl: Kubectl) -> str:
    """The last scaling decision and its reasons."""
    scaling = kubectl.get("ied", NAME, "-n", NAMESPACE).get("status", {}).get("scaling", {})
    return f"decision {scaling.get('decision')}: {'; '.join(scaling.get('reasons', []))}"


if __name__ == "__main__":
    sys.exit(main())
