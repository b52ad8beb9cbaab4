"""The plugin with no more rights than it lists: all of them are used, and none is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from apiserver.cli_process import Ran, cli
from apiserver.operator_plane import (
    audited,
    client,
    create_resource,
    eventually,
    kubectl,
    new_namespace,
    plane,
    resource,
)
from apiserver.operator_pods import add_pod, report_running
from apiserver.test_operator_cards import CARD, KUBE_SYSTEM, add_node, device_info
from apiserver.test_operator_rights import as_account, granted, roles
from imageedit_operator.cli import rights
from imageedit_operator.core import manifests
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.access import Right
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import CONFIG_MAPS, DEPLOYMENTS
from localcluster.controlplane import ControlPlane

__all__ = ["plane"]
ACCOUNT = "user"
CLAIMED = {"injection": "DRA", "deviceClassName": "npu.example.com"}
COPIED = {"name": "m", "revision": "2", "source": {"pvc": {"claimName": "a"}}, "prefetch": {"pvc": {"claimName": "b"}}}


def wider(account: str, namespace: str, *, health: bool) -> str:
    """Cards of the whole cluster, and what the device plugin says of them where `health` is granted."""
    rbac, subjects = "rbac.authorization.k8s.io", [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]

    def pair(kind: str, found: tuple[Right, ...], **where: str) -> list[dict[str, Any]]:
        metadata = {"name": f"plugin-{namespace}", **where}
        rules = [{"apiGroups": [r.group], "resources": [r.resource], "verbs": list(r.verbs)} for r in found]
        reference = {"apiGroup": rbac, "kind": kind, "name": metadata["name"]}
        bound = {"kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": subjects}
        role = {"kind": kind, "metadata": metadata, "rules": rules}
        return [{"apiVersion": f"{rbac}/v1", **item} for item in (role, bound)]

    items = pair("ClusterRole", rights.FOR_CARDS)
    items += pair("Role", rights.FOR_HEALTH, namespace=KUBE_SYSTEM) if health else []
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


async def account(plane: ControlPlane, kube: KubeClient, folder: Path, *, health: bool = True) -> tuple[str, Path]:
    """A namespace, and the login of somebody who has exactly the listed rights there."""
    namespace = await new_namespace(kube)
    kubectl(plane, "apply", "-f", "-", stdin=roles(rights.IN_NAMESPACE, ACCOUNT, namespace))
    kubectl(plane, "apply", "-f", "-", stdin=wider(ACCOUNT, namespace, health=health))
    await granted(plane, ACCOUNT, namespace, rights.IN_NAMESPACE[-1])
    if health:
        await granted(plane, ACCOUNT, KUBE_SYSTEM, rights.FOR_HEALTH[0], of=namespace)
    return namespace, as_account(plane, ACCOUNT, namespace, folder / "kubeconfig")


def asked(plane: ControlPlane, namespace: str) -> dict[tuple[str, str, str, str], bool]:
    """Group, resource, verb and namespace of all that this account asked for, and whether it got it."""
    user = f"system:serviceaccount:{namespace}:{ACCOUNT}"
    found: dict[tuple[str, str, str, str], bool] = {}
    for event in audited(plane):
        if event["user"]["username"] == user and "objectRef" in event:
            ref = event["objectRef"]
            whole = "/".join(part for part in (ref["resource"], ref.get("subresource", "")) if part)
            key = (ref.get("apiGroup", ""), whole, event["verb"], ref.get("namespace", ""))
            found[key] = found.get(key, True) and event.get("responseStatus", {}).get("code") != 403
    return found


def listed(found: tuple[Right, ...], namespace: str) -> set[tuple[str, str, str, str]]:
    return {(right.group, right.resource, verb, namespace) for right in found for verb in right.verbs}


async def test_all_commands_together_use_exactly_the_listed_rights(plane: ControlPlane, tmp_path: Path) -> None:
    async with client(plane) as kube:
        namespace, config = await account(plane, kube, tmp_path)
        await add_node(kube, f"node-{namespace}")
        stored = parse(await create_resource(kube, namespace, rollout={"canary": {}}))
        made = await kube.apply(DEPLOYMENTS, namespace, manifests.deployment(stored, revision_hash(stored)))
        await add_pod(kube, namespace, made, "edit-1")
        await report_running(kube, namespace, "edit-1", "127.0.0.1")

    async def run(*arguments: str, manifest: Any = None) -> Ran:
        return await cli(config, *arguments, "-n", namespace, stdin=yaml.safe_dump(manifest) if manifest else "")

    picture = tmp_path / "a.png"
    picture.write_bytes(bytes.fromhex("89504e470d0a1a0a"))
    cards = {"accelerator": {"resourceName": CARD}}
    ran = {
        "status": await run("status"),
        "history": await run("history", "edit"),
        "plan": await run("plan", "-f", "-", manifest={**resource(), "spec": {**resource()["spec"], **cards}}),
        "plan of copies": await run("plan", "-f", "-", manifest=resource("copies", model=COPIED)),
        "plan of claims": await run("plan", "-f", "-", manifest=resource("new", accelerator=CLAIMED)),
        "pause": await run("pause", "edit"),
        "resume": await run("resume", "edit"),
        "promote": await run("promote", "edit"),
        "restart": await run("restart", "edit"),
        "edit": await run("edit", str(picture), "blue", "-o", str(tmp_path / "b.png")),
    }

    used = asked(plane, namespace)
    assert [question for question, got in used.items() if not got] == []
    allowed = listed(rights.IN_NAMESPACE, namespace) | listed(rights.FOR_CARDS, "")
    allowed |= listed(rights.FOR_HEALTH, KUBE_SYSTEM)
    assert set(used) | {created_by_patch(namespace)} == allowed, {name: one.err for name, one in ran.items()}


def created_by_patch(namespace: str) -> tuple[str, str, str, str]:
    """A patch that would create is audited as a patch, and needs the right to create besides."""
    return ("imageedit.dev", "imageeditdeployments", "create", namespace)


async def test_a_card_that_the_plugin_calls_sick_is_not_free_in_a_plan(plane: ControlPlane, tmp_path: Path) -> None:
    async with client(plane) as kube:
        namespace, may_read = await account(plane, kube, tmp_path)
        blind_in, blind = await account(plane, kube, blind_folder(tmp_path), health=False)
        node, labels = f"sick-{namespace}", {"of": namespace}
        await add_node(kube, node)
        kubectl(plane, "label", "node", node, f"of={namespace}")
        await kube.create(CONFIG_MAPS, KUBE_SYSTEM, device_info(node, "Ascend910-1"))
    manifest = resource(accelerator={"resourceName": CARD, "injection": "Runtime", "nodeSelector": labels})

    async def view(config: Path, where: str) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            ran = await cli(config, "plan", "-f", "-", "-n", where, "-o", "json", stdin=yaml.safe_dump(manifest))
            found: dict[str, Any] = ran.document()["items"][0]
            return found if found["cards"]["free"] is not None else None

        return await eventually(look, what="a plan that knows cards")

    seen, unseen = await view(may_read, namespace), await view(blind, blind_in)
    assert (seen["cards"]["free"], seen["assumed"]) == (1, [])
    assert unseen["cards"]["free"] == 2
    assert "cards that only the device plugin calls sick were not seen" in unseen["assumed"][0]


def blind_folder(folder: Path) -> Path:
    """A place for a second login."""
    below = folder / "blind"
    below.mkdir()
    return below
