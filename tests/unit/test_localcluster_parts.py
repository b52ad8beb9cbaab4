"""The pure parts of the local cluster: wire format, iptables edits, scrape targets, images."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcluster import cards, images, network, pod_targets, processes
from localcluster.device_plugin import messages
from localcluster.errors import LocalClusterError

SAVED = """\
# Generated
*mangle
:PREROUTING ACCEPT [0:0]
:KUBE-PROXY-CANARY - [0:0]
COMMIT
# Completed
*nat
:PREROUTING ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-SERVICES - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -j RETURN
COMMIT
*filter
:INPUT ACCEPT [0:0]
-A INPUT -p tcp --dport 22 -j ACCEPT
COMMIT
"""


def pod(
    *, phase: str = "Running", ip: str | None = "198.18.65.9", annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    """A pod as the API shows it."""
    status = {"phase": phase} if ip is None else {"phase": phase, "podIP": ip}
    metadata = {"name": "web", "namespace": "demo", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"nodeName": "here"}, "status": status}


SCRAPE = {"prometheus.io/scrape": "true"}


@pytest.mark.parametrize(
    "without_target",
    [
        pod(phase="Pending", annotations=SCRAPE),
        pod(phase="Succeeded", annotations=SCRAPE),
        pod(ip=None, annotations=SCRAPE),
        pod(),
        pod(annotations={"prometheus.io/scrape": "false"}),
    ],
)
def test_a_pod_that_does_not_run_or_does_not_ask_is_no_target(without_target: dict[str, Any]) -> None:
    assert pod_targets.target_of(without_target) is None


@pytest.mark.parametrize(
    ("annotations", "target", "path"),
    [
        (SCRAPE, "198.18.65.9:80", "/metrics"),
        ({**SCRAPE, "prometheus.io/port": "8080", "prometheus.io/path": "/m"}, "198.18.65.9:8080", "/m"),
    ],
)
def test_a_running_pod_that_asks_is_a_target_with_its_names(
    annotations: dict[str, str], target: str, path: str
) -> None:
    labels = {"__metrics_path__": path, "namespace": "demo", "pod": "web", "node": "here"}
    assert pod_targets.target_of(pod(annotations=annotations)) == {"targets": [target], "labels": labels}


def test_only_our_chains_and_the_jumps_to_them_are_removed() -> None:
    mangle, nat = network.chain_removals(SAVED)
    assert mangle.splitlines() == ["*mangle", "-F KUBE-PROXY-CANARY", "-X KUBE-PROXY-CANARY", "COMMIT"]
    assert nat.splitlines() == [
        "*nat",
        '-D PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
        "-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
        "-F KUBE-SERVICES",
        "-F CNI-HOSTPORT-DNAT",
        "-X KUBE-SERVICES",
        "-X CNI-HOSTPORT-DNAT",
        "COMMIT",
    ]


def test_a_ruleset_without_our_chains_needs_no_edit() -> None:
    assert network.chain_removals("*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n") == []


def test_a_device_list_is_encoded_as_protobuf_does() -> None:
    assert messages.device_list({"Ascend910-0": True}) == b"\x0a\x16\x0a\x0bAscend910-0\x12\x07Healthy"


def test_an_allocate_request_is_read_container_by_container() -> None:
    assert messages.allocate_request(b"\x0a\x06\x0a\x01a\x0a\x01b\x0a\x03\x0a\x01c") == [["a", "b"], ["c"]]


def test_a_field_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="field 1 has wire type 0"):
        list(messages.fields(b"\x08\x01"))


@given(st.lists(st.tuples(st.integers(1, 2000), st.binary(max_size=300)), max_size=8))
def test_what_is_encoded_is_read_back(parts: list[tuple[int, bytes]]) -> None:
    assert list(messages.fields(b"".join(messages.field(number, value) for number, value in parts))) == parts


def test_cards_become_sick_and_well_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "cards.json"
    cards.set_count(file, 3)
    cards.set_health(file, 2, healthy=False)
    cards.set_health(file, 0, healthy=False)
    cards.set_health(file, 2, healthy=True)
    assert cards.read(file) == cards.Cards(count=3, unhealthy=(0,))


@pytest.mark.parametrize("card", [-1, 2])
def test_a_card_outside_the_count_is_refused(tmp_path: Path, card: int) -> None:
    file = tmp_path / "cards.json"
    cards.set_count(file, 2)
    with pytest.raises(LocalClusterError, match=f"there is no card {card}"):
        cards.set_health(file, card, healthy=False)


def test_an_image_has_a_mount_point_for_every_source_folder_and_an_open_tmp() -> None:
    layer = images.layer_of(images.Image(name="x", entrypoint=("/x",)))
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        assert {f"opt/imageedit/{source}" for source in ("venv", *images.SOURCES)} <= set(archive.getnames())
        assert archive.getmember("tmp").mode == 0o1777


def test_the_base_installation_is_read_from_the_virtual_environment(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("include-system-site-packages = false\nhome = /opt/python/bin\n")
    assert images.base_python(tmp_path) == Path("/opt/python")


def test_every_mount_from_the_host_is_read_only(tmp_path: Path) -> None:
    mounts = images.host_mounts(tmp_path)
    assert {"/usr", "/opt/imageedit/venv"} <= {mount["destination"] for mount in mounts}
    assert all("ro" in mount["options"] for mount in mounts)


def test_a_process_id_that_was_given_to_another_process_is_not_alive() -> None:
    now = processes.this_process()
    other = processes.Record(name=now.name, pid=now.pid, start_ticks=now.start_ticks - 1, boot_id=now.boot_id)
    assert processes.alive(now)
    assert not processes.alive(other)


def test_a_record_from_before_a_reboot_is_not_alive() -> None:
    now = processes.this_process()
    assert not processes.alive(processes.Record(name=now.name, pid=now.pid, start_ticks=now.start_ticks, boot_id="x"))


def test_a_process_that_was_taken_away_comes_back_as_it_was_under_another_id(tmp_path: Path) -> None:
    argv, env = ["/bin/sleep", "60"], {"COLOUR": "a=b"}
    first = processes.start("sleeper", argv, pids=tmp_path, logs=tmp_path, env=env)
    ended = processes.take_away("sleeper", pids=tmp_path)
    assert not processes.alive(first)
    second = processes.bring_back(ended, pids=tmp_path, logs=tmp_path)
    try:
        assert processes.recorded(tmp_path) == [second]
        assert processes.alive(second)
        assert (ended.argv, ended.env["COLOUR"]) == (("/bin/sleep", "60"), "a=b")
    finally:
        processes.stop([second], grace_s=1.0)


def test_a_process_that_does_not_run_cannot_be_taken_away(tmp_path: Path) -> None:
    with pytest.raises(LocalClusterError, match="no kubelet runs"):
        processes.take_away("kubelet", pids=tmp_path)
