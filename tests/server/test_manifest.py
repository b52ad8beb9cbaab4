"""A checkpoint is held to its manifest, and the files that differ are named."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.engine.checkpoint import MANIFEST_NAME, FileHash, digest, digest_of
from imageedit_server.engine.manifest import differences_in_size, verify, write_manifest
from imageedit_server.engine.stub import StubEngine
from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.phase import WorkerPhase
from server.checkpoints import TRANSFORMER, copy_of_demo, safetensors_bytes, tiny_checkpoint
from server.running import SOURCE
from server.workers import running_worker, stub_settings

CONFIG = "transformer/config.json"


def refusal(folder: Path, *, expected_digest: str = "") -> str:
    with pytest.raises(WorkerError) as caught:
        verify(folder, expected_digest=expected_digest)
    assert (caught.value.failure.reason, caught.value.failure.sticky) == ("ModelInvalid", True)
    return caught.value.failure.message


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A small checkpoint with its manifest."""
    folder = tiny_checkpoint(tmp_path)
    write_manifest(folder)
    return folder


def test_the_manifest_lists_each_file_in_order_with_size_and_hash(listed: Path) -> None:
    manifest = json.loads((listed / MANIFEST_NAME).read_text())
    assert [file["path"] for file in manifest["files"]] == ["model_index.json", CONFIG, TRANSFORMER]
    assert manifest["files"][1]["size"] == 2
    assert manifest["files"][1]["sha256"] == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert manifest["digest"] == digest(listed)


def test_the_manifest_changes_no_digest_and_leaves_nothing_beside_it(listed: Path) -> None:
    before = digest(listed)
    assert write_manifest(listed) == before
    assert digest(listed) == before
    assert sorted(path.name for path in listed.iterdir()) == [MANIFEST_NAME, "model_index.json", "transformer"]


def test_a_checkpoint_that_matches_gives_its_digest(listed: Path) -> None:
    assert verify(listed, expected_digest="") == digest(listed)
    assert verify(listed, expected_digest=digest(listed)) == digest(listed)


def test_without_manifest_and_digest_nothing_is_read(tmp_path: Path) -> None:
    assert verify(tiny_checkpoint(tmp_path), expected_digest="") is None


def test_without_manifest_the_files_must_have_the_digest_that_was_asked_for(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    assert verify(folder, expected_digest=digest(folder)) == digest(folder)
    other = "sha256:" + "0" * 64
    message = refusal(folder, expected_digest=other)
    assert digest(folder) in message
    assert other in message


def test_a_manifest_with_another_digest_than_asked_for_is_refused_without_reading_the_files(listed: Path) -> None:
    (listed / TRANSFORMER).unlink()
    message = refusal(listed, expected_digest="sha256:" + "0" * 64)
    assert "--manifest-digest asks for sha256:000" in message
    assert "missing" not in message


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / TRANSFORMER).unlink(), f"missing: {TRANSFORMER}"),
        (lambda folder: (folder / CONFIG).write_text("{"), f"truncated or of another size: {CONFIG} (1 bytes instead"),
        (lambda folder: (folder / "notes.txt").write_text("x"), "not in the manifest: notes.txt"),
        (
            lambda folder: (folder / TRANSFORMER).write_bytes(safetensors_bytes(values=b"9234")),
            f"altered: {TRANSFORMER}",
        ),
    ],
)
def test_what_differs_from_the_manifest_is_named(listed: Path, damage: Callable[[Path], object], said: str) -> None:
    damage(listed)
    assert said in refusal(listed)


def test_all_that_sizes_tell_is_said_at_once(listed: Path) -> None:
    (listed / TRANSFORMER).unlink()
    (listed / "notes.txt").write_text("x")
    assert f"missing: {TRANSFORMER}; not in the manifest: notes.txt" in refusal(listed)


@pytest.mark.parametrize(
    "content", ["", "[]", '{"version": 2, "files": []}', '{"version": 1}', '{"version": 1, "files": [1]}']
)
def test_a_manifest_that_cannot_be_read_is_refused(listed: Path, content: str) -> None:
    (listed / MANIFEST_NAME).write_text(content)
    assert "is no manifest" in refusal(listed)


def hashes(sizes: dict[str, int]) -> list[FileHash]:
    return [FileHash(path=path, size=size, sha256="00") for path, size in sizes.items()]


trees = st.dictionaries(st.text("abc/", min_size=1, max_size=3), st.integers(0, 3), max_size=6)


@given(trees, trees)
def test_every_path_that_is_not_the_same_on_both_sides_is_said_once(
    wanted: dict[str, int], found: dict[str, int]
) -> None:
    differences = differences_in_size(hashes(wanted), found)
    said = [
        *differences.missing,
        *(text.partition(" ")[0] for text in differences.of_another_size),
        *differences.foreign,
    ]
    odd = {path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path)}
    assert sorted(said) == sorted(odd)


@given(trees)
def test_the_digest_does_not_depend_on_the_order_of_the_files(sizes: dict[str, int]) -> None:
    files = hashes(sizes)
    assert digest_of(files) == digest_of(files[::-1])


def test_loading_checks_the_manifest(tmp_path: Path) -> None:
    folder = copy_of_demo(tmp_path)
    write_manifest(folder)
    engine = StubEngine(model_dir=folder, edit_s=0.0, load_s=0.0, steps=4)
    assert engine.load().digest == digest(folder)
    (folder / "tokenizer" / "tokenizer_config.json").write_text("{}")
    with pytest.raises(WorkerError, match=r"tokenizer/tokenizer_config\.json"):
        engine.load()


async def test_a_worker_refuses_a_checkpoint_of_another_digest_and_does_not_come_again() -> None:
    async with running_worker(stub_settings(manifest_digest="sha256:" + "0" * 64)) as worker:
        await worker.until(WorkerPhase.FAILED)
        assert worker.failure is not None
        assert worker.failure.reason == "ModelInvalid"
        assert "sha256:000" in worker.failure.message
        assert worker.restarts == 0


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "imageedit_server", *arguments],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_the_command_writes_the_manifest_and_prints_the_digest(tmp_path: Path) -> None:
    folder = copy_of_demo(tmp_path)
    done = command("manifest", str(folder))
    assert (done.returncode, done.stdout.strip()) == (0, digest(folder))
    assert verify(folder, expected_digest=digest(folder)) == digest(folder)


def test_the_command_refuses_what_is_no_checkpoint_with_its_exit_code(tmp_path: Path) -> None:
    done = command("manifest", str(tmp_path / "absent"))
    assert done.returncode == 65
    assert "ModelMissing: there is no folder" in done.stderr
