"""Host processes with logs and records, stopped by record only.

A record holds the process id with its start time and the machine's boot id,
so that a process id which the kernel gave to somebody else is never signalled. A mark in the
environment finds what was started but not recorded, because the starter was killed in between.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from localcluster.errors import LocalClusterError
from localcluster.paths import PACKAGE
from localcluster.progress import tail

POLL_S = 0.05
MARK = "IMAGEEDIT_LOCAL_STATE"
"""Environment variable of everything that is started here: the state folder that it belongs to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One process as it was when it started."""

    name: str
    pid: int
    start_ticks: int
    boot_id: str


def boot_id() -> str:
    """New for every boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def this_process() -> Record:
    """The record of the process that runs this."""
    return Record(name="owner", pid=os.getpid(), start_ticks=start_ticks(os.getpid()) or 0, boot_id=boot_id())


def start(name: str, argv: Sequence[str], *, pids: Path, logs: Path, env: Mapping[str, str] | None = None) -> Record:
    """Start a program in a session of its own, with its output in `<logs>/<name>.log`, and record it."""
    log = logs / f"{name}.log"
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    environment = {**(os.environ if env is None else env), MARK: str(pids.parent)}
    pid = os.posix_spawn(argv[0], list(argv), environment, file_actions=actions, setsid=True)
    record = Record(name=name, pid=pid, start_ticks=start_ticks(pid) or 0, boot_id=boot_id())
    unfinished = pids / f"{name}.unfinished"
    unfinished.write_text(json.dumps(asdict(record)))
    unfinished.replace(pids / f"{name}.json")
    return record


def start_python(name: str, module: str, args: Sequence[str], *, pids: Path, logs: Path) -> Record:
    """One of our own modules as a host process, with the interpreter that runs this."""
    env = dict(os.environ, PYTHONPATH=str(PACKAGE.parent), PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
    return start(name, [sys.executable, "-m", module, *args], pids=pids, logs=logs, env=env)


def alive(record: Record) -> bool:
    """Whether that very process still runs; collects it when it was our child and has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(record.pid, os.WNOHANG)
    return record.boot_id == boot_id() and start_ticks(record.pid) == record.start_ticks


def recorded(pids: Path) -> list[Record]:
    """Everything that was started below this folder, dead or alive; half-written records are skipped."""
    found = []
    for file in sorted(pids.glob("*.json")):
        with contextlib.suppress(ValueError, TypeError):
            found.append(Record(**json.loads(file.read_text())))
    return found


def marked(state_folder: Path) -> list[Record]:
    """Living processes that carry the mark of this state folder, recorded or not."""
    wanted = f"{MARK}={state_folder}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            ticks = start_ticks(int(folder.name))
            if ticks is not None and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(Record(name="marked", pid=int(folder.name), start_ticks=ticks, boot_id=boot_id()))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """A process that was taken away, and all that is needed to start it again."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]


def take_away(name: str, *, pids: Path) -> Ended:
    """Kill the recorded process of that name without warning; returns when it is gone."""
    found = [record for record in recorded(pids) if record.name == name and alive(record)]
    if not found:
        raise LocalClusterError(f"no {name} runs: {', '.join(one.name for one in recorded(pids) if alive(one))} do")
    argv, environ = (_words(Path(f"/proc/{found[0].pid}/{file}")) for file in ("cmdline", "environ"))
    ended = Ended(name=name, argv=tuple(argv), env=dict(word.split("=", 1) for word in environ))
    stop(found, grace_s=0.0)
    return ended


def bring_back(ended: Ended, *, pids: Path, logs: Path) -> Record:
    """Start it again as it was, on what it left on disk."""
    return start(ended.name, ended.argv, pids=pids, logs=logs, env=ended.env)


def _words(file: Path) -> list[str]:
    return file.read_bytes().decode(errors="surrogateescape").split("\0")[:-1]


def stop(records: Sequence[Record], *, grace_s: float) -> None:
    """End these processes, politely first; returns when all are gone."""
    for record in records:
        send(record, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and any(alive(record) for record in records):
        time.sleep(POLL_S)
    for record in records:
        send(record, signal.SIGKILL)
    wait_for("killed processes to end", lambda: not any(alive(record) for record in records), timeout_s=10)


def send(record: Record, number: signal.Signals) -> None:
    """Signal the recorded process, if it still is that process."""
    if alive(record):
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, number)


def wait_for(
    what: str, check: Callable[[], bool], *, timeout_s: float, needs: Sequence[Record] = (), logs: Path | None = None
) -> None:
    """Poll until `check` holds; LocalClusterError at the deadline or when a needed process ended, with its log."""
    deadline = time.monotonic() + timeout_s
    while not check():
        for record in needs:
            if not alive(record):
                raise LocalClusterError(f"{record.name} ended while waiting for {what}{_log_of(record.name, logs)}")
        if time.monotonic() > deadline:
            suspects = needs[-1].name if needs else ""
            raise LocalClusterError(f"{what}: not within {timeout_s:.0f} s{_log_of(suspects, logs)}")
        time.sleep(POLL_S)


def _log_of(name: str, logs: Path | None) -> str:
    if logs is None or not name:
        return ""
    file = logs / f"{name}.log"
    return f"; the end of {file}:\n{tail(file)}"
