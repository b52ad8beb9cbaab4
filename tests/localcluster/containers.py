"""containerd with folders and a socket of its own, beside any other containerd of the machine."""

from __future__ import annotations

import os
from pathlib import Path

from localcluster import images, network, processes
from localcluster.hosttools import CNI_PLUGINS, program, search_path
from localcluster.paths import Layout
from localcluster.processes import Record

START_TIMEOUT_S = 30.0
CRI = 'plugins."io.containerd.grpc.v1.cri"'
PLAIN_RUNTIME = "plain"
"""Handler, and RuntimeClass, for real images, which bring their own /usr: no mounts from the host."""

CONFIG = """\
version = 2
root = "{root}/containerd/root"
state = "{state}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{root}/containerd/opt"
[{cri}]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE runc may not lower the score below containerd's own, and ends with an obscure error.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [{cri}.cni]
    bin_dir = "{cni_plugins}"
    conf_dir = "{cni_config}"
  [{cri}.containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
    [{cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      base_runtime_spec = "{spec}"
      [{cri}.containerd.runtimes.runc.options]
        Root = "{root}/containerd/runc"
        BinaryName = "{runc}"
    [{cri}.containerd.runtimes.{plain}]
      runtime_type = "io.containerd.runc.v2"
      [{cri}.containerd.runtimes.{plain}.options]
        Root = "{root}/containerd/runc"
        BinaryName = "{runc}"
"""


def start(layout: Layout, venv: Path) -> Record:
    """Write the configuration and start containerd; `wait_ready` says when it answers."""
    config = layout.config / "containerd.toml"
    config.write_text(
        CONFIG.format(
            root=layout.root,
            state=layout.containerd_state,
            socket=layout.containerd_socket,
            cri=CRI,
            pause=images.PAUSE,
            cni_plugins=CNI_PLUGINS,
            cni_config=network.write_cni_config(layout),
            snapshotter=snapshotter(),
            spec=images.write_runtime_spec(layout, venv),
            plain=PLAIN_RUNTIME,
            runc=program("runc"),
        )
    )
    environment = dict(os.environ, PATH=search_path())
    argv = [program("containerd"), "--config", str(config)]
    return processes.start("containerd", argv, pids=layout.pids, logs=layout.logs, env=environment)


def wait_ready(layout: Layout, containerd: Record) -> None:
    """Until the socket answers; raises LocalClusterError with the log when containerd ended."""

    def answers() -> bool:
        if not layout.containerd_socket.exists():
            return False
        return bool(network.run("ctr", "--address", str(layout.containerd_socket), "version", check=False))

    processes.wait_for("containerd to answer", answers, timeout_s=START_TIMEOUT_S, needs=[containerd], logs=layout.logs)


def snapshotter() -> str:
    """overlayfs where the kernel has it; copies otherwise."""
    return "overlayfs" if "\toverlay\n" in Path("/proc/filesystems").read_text() else "native"
