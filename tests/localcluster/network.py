"""The node's address, and everything that pods and kube-proxy leave in the host's network: made, and removed again."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from localcluster.addresses import CNI_NETWORK, NODE_ADDRESS, NODE_DEVICE, POD_BRIDGE, POD_RANGE, SERVICE_RANGE
from localcluster.errors import LocalClusterError
from localcluster.hosttools import CNI_PLUGINS, program
from localcluster.paths import Layout

CHAINS = re.compile(r"^(KUBE|CNI)-")
SYSCTLS = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/route_localnet",
    "net/ipv6/conf/all/forwarding",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_tcp_be_liberal",
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/panic_on_oops",
)
"""What the CNI plugins, kube-proxy and the kubelet write."""


def run(*argv: str, stdin: str | None = None, check: bool = True) -> str:
    """The output of a program; raises LocalClusterError with its error text when it fails and `check` holds."""
    done = subprocess.run([program(argv[0]), *argv[1:]], input=stdin, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise LocalClusterError(f"{' '.join(argv)} failed: {done.stderr.strip()}")
    return done.stdout


def add_node_address() -> None:
    """An empty bridge carries the node's address: the kubelet refuses loopback, and not every kernel has `dummy`.

    The route lets host programs pick a source address for Service addresses, also on a machine without a default route.
    """
    run("ip", "link", "add", NODE_DEVICE, "type", "bridge")
    run("ip", "addr", "add", f"{NODE_ADDRESS}/32", "dev", NODE_DEVICE)
    run("ip", "link", "set", NODE_DEVICE, "up")
    run("ip", "route", "add", SERVICE_RANGE, "dev", NODE_DEVICE, "src", NODE_ADDRESS)


def write_cni_config(layout: Layout) -> Path:
    """The folder with the one pod network: a bridge with host-local addresses, no masquerade, host ports."""
    folder = layout.config / "cni"
    folder.mkdir(exist_ok=True)
    addresses = {
        "type": "host-local",
        "dataDir": str(layout.root / "cni-addresses"),
        "ranges": [[{"subnet": POD_RANGE}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": POD_BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    config = {"cniVersion": "1.0.0", "name": CNI_NETWORK, "plugins": [bridge, ports]}
    (folder / "10-imageedit.conflist").write_text(json.dumps(config))
    if not (CNI_PLUGINS / "bridge").exists():
        raise LocalClusterError("the CNI plugins are missing: as root run: apt-get install containernetworking-plugins")
    return folder


def devices() -> set[str]:
    """The node device, the pod bridge and what hangs on it, as far as they exist."""
    links = json.loads(run("ip", "-json", "link", "show") or "[]")
    return {
        link["ifname"]
        for link in links
        if link["ifname"] in {NODE_DEVICE, POD_BRIDGE} or link.get("master") == POD_BRIDGE
    }


def remove_devices() -> None:
    """Ends that vanish by themselves, with their network namespace, are no error."""
    for name in sorted(devices(), key=lambda name: name == POD_BRIDGE):
        run("ip", "link", "del", name, check=False)


def read_sysctls() -> dict[str, str]:
    """The present values of the kernel settings that a cluster changes."""
    files = {name: Path("/proc/sys") / name for name in SYSCTLS}
    return {name: file.read_text().strip() for name, file in files.items() if file.exists()}


def restore_sysctls(before: Mapping[str, str]) -> None:
    """Write back what changed."""
    for name, value in read_sysctls().items():
        if name in before and before[name] != value:
            Path("/proc/sys", name).write_text(before[name])


def remove_chains() -> None:
    """Take the chains of kube-proxy, kubelet and CNI, and the rules that jump to them, out of every table."""
    for family in ("iptables", "ip6tables"):
        for edit in chain_removals(run(f"{family}-save", check=False)):
            run(f"{family}-restore", "--noflush", stdin=edit)


def chain_removals(saved: str) -> list[str]:
    """What iptables-restore must be told, table by table, to remove these chains from what iptables-save printed."""
    edits = []
    for table in saved.split("\n*")[0 if saved.startswith("*") else 1 :]:
        lines = table.lstrip("*").splitlines()
        chains = [line[1:].split()[0] for line in lines if line.startswith(":") and CHAINS.match(line[1:])]
        rules = [line for line in lines if line.startswith("-A ")]
        jumps = [rule for rule in rules if not CHAINS.match(rule.split()[1]) and _goes_to(rule, set(chains))]
        if chains:
            flush = [f"-F {chain}" for chain in chains]
            delete = [f"-X {chain}" for chain in chains]
            edits.append(
                "\n".join([f"*{lines[0]}", *(f"-D{jump[2:]}" for jump in jumps), *flush, *delete, "COMMIT", ""])
            )
    return edits


def _goes_to(rule: str, chains: set[str]) -> bool:
    words = rule.split()
    return any(word in {"-j", "-g"} and target in chains for word, target in pairwise(words))
