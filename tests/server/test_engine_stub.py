"""The stub engine keeps time and nothing else."""

import sys
import time
import traceback
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from dataclasses import replace
from pathlib import Path

import pytest

from imageedit_server.engine.checkpoint import digest, resolve_model_dir
from imageedit_server.engine.kinds import KINDS
from imageedit_server.engine.stub import StubEngine
from imageedit_server.engine.warmup import check_edit
from server.checkpoints import tiny_checkpoint
from server.workers import SMALL, edit_job


def stub(*, edit_s: float = 0.2, steps: int = 4, model_dir: Path | None = None) -> StubEngine:
    return StubEngine(model_dir=model_dir or resolve_model_dir("demo"), edit_s=edit_s, load_s=0.0, steps=steps)


def test_an_edit_holds_the_slot_for_the_time_that_was_asked_for() -> None:
    started_s = time.monotonic()
    result = stub(edit_s=0.2).edit(edit_job(steps=4), lambda step, steps: None)
    assert 0.2 <= time.monotonic() - started_s < 0.6
    assert 0.2 <= result.seconds < 0.6


def test_half_the_steps_take_half_the_time() -> None:
    result = stub(edit_s=0.4, steps=4).edit(edit_job(steps=2), lambda step, steps: None)
    assert 0.2 <= result.seconds < 0.39


def test_the_picture_comes_back_inverted() -> None:
    result = stub(edit_s=0.0).edit(edit_job(picture=b"\x00\x7f\xff" * SMALL.area_px), lambda step, steps: None)
    assert result.picture == b"\xff\x80\x00" * SMALL.area_px


def test_the_digest_is_that_of_the_real_files() -> None:
    assert stub().load().digest == digest(resolve_model_dir("demo"))


@pytest.mark.parametrize(
    "module",
    ["imageedit_server.engine.stub", "imageedit_server.worker.loop", "imageedit_server.worker.supervisor"],
)
async def test_torch_is_not_imported_by(module: str) -> None:
    look = "print([name for name in ('torch', 'diffusers') if name in sys.modules])"
    code = f"import sys; sys.path[:] = {sys.path!r}; import {module}; {look}"
    process = await create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE)
    printed, _ = await process.communicate()
    assert printed.decode().strip() == "[]"


def test_a_negative_prompt_with_a_scale_doubles_the_time() -> None:
    job = edit_job(steps=4, negative_prompt="blur", true_cfg_scale=4.0)
    assert 0.2 <= stub(edit_s=0.1).edit(job, lambda step, steps: None).seconds < 0.6


def test_a_job_without_a_picture_gives_one_of_its_size_that_a_warm_up_believes() -> None:
    job = replace(edit_job(), picture=b"")
    made = stub(edit_s=0.0).edit(job, lambda step, steps: None).picture
    assert check_edit(job.size, b"", made)[0]


@pytest.mark.parametrize("name", KINDS)
def test_the_stub_takes_what_the_class_of_the_checkpoint_takes(tmp_path: Path, name: str) -> None:
    can = stub(model_dir=tiny_checkpoint(tmp_path, class_name=name)).load().capabilities
    assert can == KINDS[name].capabilities(
        max_references=1, max_prompt_tokens=1024, guidance=True, negative_prompt=False
    )


def test_edits_that_fail_again_and_again_do_not_keep_what_came_before() -> None:
    engine, lengths = stub(edit_s=0.0), []
    for _ in range(3):
        with pytest.raises(ValueError, match="told to fail") as raised:
            engine.edit(edit_job(prompt="fault: error"), lambda *_: None)
        lengths.append(len(traceback.extract_tb(raised.value.__traceback__)))
    assert len(set(lengths)) == 1
