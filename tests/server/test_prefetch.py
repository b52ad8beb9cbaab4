"""A checkpoint is copied near the card: verified, resumed, shown whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imageedit_server.engine.checkpoint import MANIFEST_NAME, digest
from imageedit_server.engine.manifest import read_listing, verify, write_manifest
from imageedit_server.prefetch.copying import part_of
from imageedit_server.prefetch.failures import EXIT_CODES, CannotCopy, Failure
from imageedit_server.prefetch.local_copy import Order, copy_checkpoint, incoming_of
from imageedit_server.prefetch.locking import lock_of
from imageedit_server.prefetch.pruning import remove_others
from server.checkpoints import TRANSFORMER, safetensors_bytes, tiny_checkpoint
from server.running import SOURCE

CONFIG = "transformer/config.json"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small checkpoint with its manifest."""
    folder = tiny_checkpoint(tmp_path)
    write_manifest(folder)
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where the copy goes; neither it nor its parent is there."""
    return tmp_path / "node" / "copy"


def copy(source: Path, target: Path, **more: object) -> list[str]:
    """The lines that were said."""
    said: list[str] = []
    order = Order(source=source, target=target, **more)  # type: ignore[arg-type] # a test gives what fits
    copy_checkpoint(order, say=said.append, clock=lambda: 0.0)
    return said


def refused(source: Path, target: Path, **more: object) -> CannotCopy:
    with pytest.raises(CannotCopy) as caught:
        copy(source, target, **more)
    return caught.value


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_copy_is_the_checkpoint_with_its_manifest_and_nothing_else(source: Path, target: Path) -> None:
    copy(source, target)
    assert verify(target, expected_digest=digest(source)) == digest(source)
    assert files(target) == files(source)
    assert [path.name for path in target.parent.iterdir() if path != target] == [lock_of(target).name]


def test_a_source_without_a_manifest_is_hashed_first_and_the_copy_gets_one(tmp_path: Path, target: Path) -> None:
    source = tiny_checkpoint(tmp_path)
    said = copy(source, target)
    assert "has no manifest, so all of it is read twice" in said[0]
    assert verify(target, expected_digest=digest(source)) == digest(source)


def test_a_second_copy_moves_no_byte(source: Path, target: Path) -> None:
    copy(source, target)
    before = (target / TRANSFORMER).stat()
    said = copy(source, target)
    assert said == [f"3 of 3 files are right already; 0 bytes are to be copied to {target}"]
    assert (target / TRANSFORMER).stat().st_ino == before.st_ino


def test_a_file_of_a_visible_copy_that_went_bad_is_replaced_as_a_whole(source: Path, target: Path) -> None:
    copy(source, target)
    (target / TRANSFORMER).write_bytes(safetensors_bytes(values=b"9999"))
    kept = (target / CONFIG).stat().st_ino
    with (target / TRANSFORMER).open("rb") as reading:
        copy(source, target)
        assert reading.read() == safetensors_bytes(values=b"9999")
    assert verify(target, expected_digest="") == digest(source)
    assert (target / CONFIG).stat().st_ino == kept


def test_files_that_an_earlier_try_finished_are_not_copied_again(source: Path, target: Path) -> None:
    done = incoming_of(target) / CONFIG
    done.parent.mkdir(parents=True)
    done.write_bytes((source / CONFIG).read_bytes())
    node = done.stat().st_ino
    said = copy(source, target)
    assert said[0].startswith("1 of 3 files are right already")
    assert (target / CONFIG).stat().st_ino == node


def leave_part(target: Path, content: bytes) -> None:
    part = part_of(incoming_of(target) / TRANSFORMER)
    part.parent.mkdir(parents=True)
    part.write_bytes(content)


def test_a_part_of_a_file_is_gone_on_with(source: Path, target: Path) -> None:
    whole = (source / TRANSFORMER).read_bytes()
    leave_part(target, whole[:40])
    total = sum((source / path).stat().st_size for path in ("model_index.json", CONFIG, TRANSFORMER))
    said = copy(source, target)
    assert said == [
        f"0 of 3 files are right already; {total - 40} bytes are to be copied to {incoming_of(target)}",
    ]
    assert verify(target, expected_digest="") == digest(source)


@pytest.mark.parametrize("left", [b"", b"other bytes", b"x" * 10_000])
def test_a_part_that_is_no_beginning_of_the_file_is_copied_anew(source: Path, target: Path, left: bytes) -> None:
    leave_part(target, left)
    copy(source, target)
    assert verify(target, expected_digest="") == digest(source)


def test_what_an_earlier_try_for_other_files_left_is_removed(source: Path, target: Path) -> None:
    incoming = incoming_of(target)
    (incoming / "old").mkdir(parents=True)
    (incoming / "old" / "weights.safetensors").write_text("x")
    (incoming / "model_index.json").mkdir()
    (incoming / "transformer").write_text("a file where a folder belongs")
    copy(source, target)
    assert files(target) == files(source)


def test_nothing_is_to_be_seen_before_the_last_file_is_right(source: Path, target: Path) -> None:
    damaged = (source / TRANSFORMER).stat().st_size
    (source / TRANSFORMER).write_bytes(safetensors_bytes(values=b"9234"))
    assert (source / TRANSFORMER).stat().st_size == damaged
    said = refused(source, target)
    assert said.failure is Failure.MODEL_INVALID
    assert f"{source / TRANSFORMER} is not the file of the manifest" in said.message
    assert not target.exists()


def escape(folder: Path) -> None:
    content = json.loads((folder / MANIFEST_NAME).read_text())
    content["files"][0]["path"] = "../secret"
    (folder / MANIFEST_NAME).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / TRANSFORMER).unlink(), "holds no .safetensors weights"),
        (lambda folder: (folder / CONFIG).write_text("{ }"), f"of another size: {CONFIG}"),
        (lambda folder: (folder / "notes.txt").write_text("x"), "not in the manifest: notes.txt"),
        (lambda folder: (folder / MANIFEST_NAME).write_text("{"), "is no manifest"),
        (escape, "../secret leads out of the checkpoint's folder"),
    ],
)
def test_what_is_wrong_with_the_source_is_said_before_a_byte_moves(
    source: Path, target: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(source)
    refusal = refused(source, target)
    assert refusal.failure is Failure.MODEL_INVALID
    assert said in refusal.message
    assert not target.parent.exists()


def test_a_source_that_is_not_there_is_missing(tmp_path: Path, target: Path) -> None:
    assert refused(tmp_path / "absent", target).failure is Failure.MODEL_MISSING


def test_a_source_whose_volume_does_not_answer_now_may_be_tried_again(source: Path, target: Path) -> None:
    (source / "model_index.json").unlink()
    (source / "model_index.json").symlink_to("/proc/self/mem")  # reading it is an input/output error
    assert refused(source, target).failure is Failure.COPY_FAILED


def test_a_source_of_another_digest_than_asked_for_is_refused(source: Path, target: Path) -> None:
    other = "sha256:" + "0" * 64
    assert (
        f"has the digest {digest(source)}, and {other} is asked for"
        in refused(source, target, expected_digest=other).message
    )


@pytest.mark.parametrize("there", ["folder", "checkpoint", "file", "link"])
def test_what_somebody_else_put_there_is_never_touched(source: Path, target: Path, tmp_path: Path, there: str) -> None:
    target.parent.mkdir()
    if there == "folder":
        target.mkdir()
    elif there == "checkpoint":
        tiny_checkpoint(tmp_path / "other", class_name="QwenImagePipeline").rename(target)
        write_manifest(target)
    elif there == "file":
        target.write_text("x")
    else:
        target.symlink_to(source)
    refusal = refused(source, target)
    assert refusal.failure is Failure.TARGET_UNUSABLE
    assert f"{target} is there already" in refusal.message


def test_a_disk_without_room_is_refused_before_the_first_file(source: Path, target: Path) -> None:
    said = refused(source, target, reserve_percent=100)
    assert said.failure is Failure.DISK_FULL
    assert files(target.parent) == {lock_of(target).name}


def test_a_target_that_cannot_be_made_is_named(source: Path, tmp_path: Path) -> None:
    (tmp_path / "node").write_text("a file")
    said = refused(source, tmp_path / "node" / "copy")
    assert said.failure is Failure.TARGET_UNUSABLE
    assert str(tmp_path / "node") in said.message


def lives(parent: Path) -> set[str]:
    return {path.name for path in parent.iterdir() if not path.name.endswith(".lock")}


def test_copies_that_no_revision_needs_are_removed_and_others_stay(source: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    for name in ("ns.edit.old", "ns.edit.good", "ns.other.x"):
        copy(source, node / name)
    (node / ".ns.edit.broken.incoming").mkdir()
    said: list[str] = []
    remove_others(node / "ns.edit.new", prefix="ns.edit.", keep={"ns.edit.good"}, say=said.append)
    assert said == [f"removes {node / 'ns.edit.old'}, which no revision needs any more"]
    assert lives(node) == {"ns.edit.good", "ns.other.x"}


def test_a_copy_that_another_copier_makes_is_not_removed(source: Path, tmp_path: Path) -> None:
    copy(source, tmp_path / "ns.edit.old")
    with lock_of(tmp_path / "ns.edit.old").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        remove_others(tmp_path / "ns.edit.new", prefix="ns.edit.", keep=set(), say=lambda _: None)
    assert (tmp_path / "ns.edit.old").is_dir()


def test_the_lock_of_a_removed_copy_stays_so_that_nobody_holds_a_lock_that_others_do_not_see(
    source: Path, tmp_path: Path
) -> None:
    copy(source, tmp_path / "ns.edit.old")
    inode = lock_of(tmp_path / "ns.edit.old").stat().st_ino
    remove_others(tmp_path / "ns.edit.new", prefix="ns.edit.", keep=set(), say=lambda _: None)
    assert not (tmp_path / "ns.edit.old").exists()
    assert lock_of(tmp_path / "ns.edit.old").stat().st_ino == inode


def test_removing_beside_a_folder_that_is_not_there_does_nothing(tmp_path: Path) -> None:
    remove_others(tmp_path / "absent" / "copy", prefix="ns.", keep=set(), say=lambda _: None)
    assert not (tmp_path / "absent").exists()


class Killed(BaseException):
    """The process is gone."""


class Clock:
    """Ends the copier at its n-th look at the time, which it takes after each piece of a file."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> float:
        self.looks -= 1
        if self.looks < 0:
            raise Killed
        return 0.0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ends=st.lists(st.integers(0, 5), max_size=5),
    torn=st.lists(
        st.tuples(st.sampled_from([TRANSFORMER, CONFIG, "model_index.json"]), st.binary(max_size=120)), max_size=3
    ),
)
def test_however_often_a_copier_is_ended_the_copy_is_whole_or_not_there_and_gets_done(
    source: Path,
    tmp_path: Path,
    ends: Sequence[int],
    torn: Sequence[tuple[str, bytes]],
) -> None:
    target = tmp_path / f"copy-{os.urandom(4).hex()}"
    order = Order(source=source, target=target)
    for looks in ends:
        with contextlib.suppress(Killed):
            copy_checkpoint(order, say=lambda _: None, clock=Clock(looks))
        assert not target.exists() or verify(target, expected_digest=digest(source))
        for path, content in torn:
            part = part_of(incoming_of(target) / path)
            if part.parent.is_dir():
                part.write_bytes(content)
    copy_checkpoint(order, say=lambda _: None, clock=lambda: 0.0)
    assert verify(target, expected_digest=digest(source)) == digest(source)
    assert files(target) == files(source)
    assert read_listing(target) == read_listing(source)


def command(*arguments: str, log: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "imageedit_server", "prefetch", *arguments],
        env={"PYTHONPATH": str(SOURCE), **({"IMAGEEDIT_TERMINATION_LOG": str(log)} if log else {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_the_command_prints_the_digest_and_leaves_files_that_every_user_may_read(source: Path, target: Path) -> None:
    (source / TRANSFORMER).chmod(0o600)
    done = command(str(source), str(target), "--manifest-digest", digest(source))
    assert (done.returncode, done.stdout.strip()) == (0, digest(source))
    assert (target / TRANSFORMER).stat().st_mode & 0o777 == 0o644
    assert target.stat().st_mode & 0o777 == 0o755


def test_the_command_ends_with_a_code_and_a_termination_message_that_names_the_file(
    source: Path, target: Path, tmp_path: Path
) -> None:
    (source / TRANSFORMER).write_bytes(safetensors_bytes(values=b"9234"))
    done = command(str(source), str(target), log=tmp_path / "log")
    assert done.returncode == EXIT_CODES[Failure.MODEL_INVALID] == 66
    assert (tmp_path / "log").read_text().startswith(f"ModelInvalid: {source / TRANSFORMER} is not the file of")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{source}",), "TARGET"),
        (("{source}", "{source}/below"), "lie within each other"),
        (("{source}", "{target}", "--keep-free", "91"), "--keep-free 91 is not between 0 and 90"),
        (("{source}", "{target}", "--manifest-digest", "md5:1"), "is not sha256:"),
    ],
)
def test_arguments_that_make_no_sense_are_named(
    source: Path, target: Path, arguments: Sequence[str], said: str
) -> None:
    done = command(*(text.format(source=source, target=target) for text in arguments))
    assert done.returncode == 64
    assert "SettingsInvalid: " in done.stderr
    assert said in done.stderr


def test_the_command_waits_for_another_copier_and_hears_sigterm_meanwhile(source: Path, target: Path) -> None:
    target.parent.mkdir()
    with lock_of(target).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, "-m", "imageedit_server", "prefetch", str(source), str(target)],
            env={"PYTHONPATH": str(SOURCE)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr is not None
        assert "another copier is at work" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGTERM)
        _, said = waiting.communicate(timeout=30)
    assert waiting.returncode == 143
    assert "the next try goes on here" in said
    assert not target.exists()


def test_the_page_has_every_exit_code() -> None:
    page = (SOURCE.parents[1] / "docs/reference/server-settings.md").read_text()
    section = page.partition("## `imageedit-server prefetch")[2].partition("\n## ")[0]
    found = {reason: int(code) for reason, code in re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.MULTILINE)}
    assert found == {failure.value: code for failure, code in EXIT_CODES.items()}


def test_the_command_needs_neither_torch_nor_a_device() -> None:
    program = "import sys, imageedit_server.__main__; sys.exit('torch' in sys.modules or 'diffusers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(SOURCE)}, check=False, timeout=30)
    assert done.returncode == 0
