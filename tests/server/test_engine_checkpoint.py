"""What is said about a checkpoint before torch sees it."""

import hashlib
import json
from pathlib import Path

import pytest

from imageedit_server.engine.checkpoint import check_checkpoint, digest, resolve_model_dir
from imageedit_server.engine.kinds import KINDS
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from server.checkpoints import TRANSFORMER, copy_of_demo, safetensors_bytes, tiny_checkpoint


def refusal(folder: Path) -> WorkerFailure:
    with pytest.raises(WorkerError) as caught:
        check_checkpoint(folder)
    return caught.value.failure


def test_the_demo_checkpoint_is_whole() -> None:
    assert check_checkpoint(resolve_model_dir("demo")) == "QwenImageEditPlusPipeline"


def test_a_path_is_taken_as_it_is() -> None:
    assert resolve_model_dir("/models/qwen") == Path("/models/qwen")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    failure = refusal(tmp_path / "absent")
    assert failure.reason == "ModelMissing"
    assert str(tmp_path / "absent") in failure.message


def test_a_folder_without_a_model_index_is_no_model(tmp_path: Path) -> None:
    failure = refusal(tmp_path)
    assert failure.reason == "ModelMissing"
    assert "model_index.json" in failure.message


def test_truncated_weights_are_named_with_their_sizes(tmp_path: Path) -> None:
    folder = copy_of_demo(tmp_path)
    weights = folder / TRANSFORMER
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    failure = refusal(folder)
    assert failure.reason == "ModelInvalid"
    assert TRANSFORMER in failure.message
    assert f"{len(whole) - 1} bytes instead of {len(whole)}" in failure.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 bytes instead of at least 8"),
        (safetensors_bytes()[:20], "20 bytes instead of at least"),
        (safetensors_bytes() + b"more", "truncated or damaged"),
        (b"\x04\x00\x00\x00\x00\x00\x00\x00nope", "no safetensors header"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    ],
)
def test_a_file_that_is_no_whole_safetensors_file_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    folder = tiny_checkpoint(tmp_path)
    (folder / TRANSFORMER).write_bytes(content)
    failure = refusal(folder)
    assert failure.reason == "ModelInvalid"
    assert TRANSFORMER in failure.message
    assert said in failure.message


def test_a_class_that_is_not_known_is_refused_with_what_is_supported(tmp_path: Path) -> None:
    failure = refusal(tiny_checkpoint(tmp_path, class_name="QwenImageLayeredPipeline"))
    assert failure.reason == "ModelInvalid"
    assert "QwenImageLayeredPipeline is not served here" in failure.message
    assert "QwenImageEditPlusPipeline, QwenImageEditInpaintPipeline" in failure.message


@pytest.mark.parametrize("name", KINDS)
def test_every_class_of_the_table_is_taken(tmp_path: Path, name: str) -> None:
    assert check_checkpoint(tiny_checkpoint(tmp_path, class_name=name)) == name


def test_the_class_whose_size_cannot_be_held_is_refused_with_the_reason(tmp_path: Path) -> None:
    failure = refusal(tiny_checkpoint(tmp_path, class_name="QwenImageEditPipeline"))
    assert failure.reason == "ModelInvalid"
    assert "one megapixel" in failure.message


def test_a_part_that_the_index_names_must_exist(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps({**index, "vae": ["diffusers", "Any"]}))
    assert "vae" in refusal(folder).message


def test_a_part_without_weights_is_refused(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    (folder / TRANSFORMER).unlink()
    assert "no .safetensors weights" in refusal(folder).message


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    shards = {"weight_map": {"a": "diffusion_pytorch_model.safetensors", "b": "part-2.safetensors"}}
    (folder / "transformer" / "diffusion_pytorch_model.safetensors.index.json").write_text(json.dumps(shards))
    assert "lacks part-2.safetensors" in refusal(folder).message


def test_a_damaged_model_index_is_named(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    (folder / "model_index.json").write_text("{")
    failure = refusal(folder)
    assert failure.reason == "ModelInvalid"
    assert "model_index.json cannot be read" in failure.message


def test_weights_that_cannot_be_read_are_named_and_do_not_end_the_worker(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    (folder / TRANSFORMER).unlink()
    (folder / TRANSFORMER).mkdir()
    failure = refusal(folder)
    assert failure.reason == "ModelInvalid"
    assert f"{folder / TRANSFORMER} cannot be read: Is a directory" in failure.message


def test_a_path_that_the_file_system_refuses_is_no_crash(tmp_path: Path) -> None:
    failure = refusal(tmp_path / ("a" * 300))
    assert failure.reason == "ModelInvalid"
    assert "cannot be read: File name too long" in failure.message


def test_a_file_that_cannot_be_read_when_it_is_digested_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to("/proc/self/mem")
    with pytest.raises(WorkerError, match="cannot be read: Input/output error"):
        digest(tmp_path)


def test_the_digest_covers_path_size_and_bytes_of_each_file_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two").write_bytes(b"22")
    (tmp_path / "a").write_bytes(b"1")
    lines = f"a 1 {hashlib.sha256(b'1').hexdigest()}\nb/two 2 {hashlib.sha256(b'22').hexdigest()}\n"
    assert digest(tmp_path) == "sha256:" + hashlib.sha256(lines.encode()).hexdigest()


def test_the_digest_changes_with_one_byte(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    before = digest(folder)
    (folder / TRANSFORMER).write_bytes(safetensors_bytes(values=b"\x01\x02\x03\x05"))
    assert digest(folder) != before


def test_the_digest_changes_with_a_file_name(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    before = digest(folder)
    (folder / TRANSFORMER).rename(folder / "transformer" / "other.safetensors")
    assert digest(folder) != before


def test_the_digest_ignores_what_volumes_and_tools_leave_behind(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path)
    before = digest(folder)
    (folder / "lost+found").mkdir()
    (folder / ".cache").mkdir()
    (folder / ".cache" / "lock").write_text("x")
    assert digest(folder) == before
