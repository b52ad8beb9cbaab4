"""The stream of an edit, its refusals, and its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from imageedit_operator.cli import arguments, edit, edit_errors, edit_files
from imageedit_operator.cli.edit_stream import Event, Reader, Standing
from imageedit_operator.cli.exits import CommandFailed, Exit

STREAM = (
    b': {"queue_position": 2, "estimated_start_s": 7.4, "step": 0, "steps": 16}\n\n'
    b": \n\n"
    b': {"queue_position": null, "estimated_start_s": null, "step": 3, "steps": 16}\n\n'
    b'event: image_edit.completed\ndata: {"b64_json": "aGk=", "seed": 7}\n\n'
)


def read(*chunks: bytes) -> list[Standing | Event]:
    reader = Reader()
    return [found for chunk in chunks for found in reader.feed(chunk)]


def test_a_stream_tells_where_the_edit_stands_and_then_its_picture() -> None:
    first, second, last = read(STREAM)
    assert isinstance(first, Standing)
    assert isinstance(second, Standing)
    assert [first.words(), second.words()] == ["waits behind 2, starts in about 7 s", "step 3 of 16"]
    assert last == Event(kind="image_edit.completed", data={"b64_json": "aGk=", "seed": 7})


@pytest.mark.parametrize("size", [1, 7, 50])
def test_it_does_not_matter_how_the_bytes_are_cut(size: int) -> None:
    assert read(*(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == read(STREAM)


def test_lines_may_end_as_on_windows() -> None:
    assert read(STREAM.replace(b"\n", b"\r\n")) == read(STREAM)


def test_what_is_no_json_is_skipped() -> None:
    assert read(b": hello\n\nevent: x\ndata: nonsense\n\ndata: [1]\n\n") == []


@pytest.mark.parametrize(
    ("status", "body", "proxied", "code", "words"),
    [
        (503, {"kind": "Status", "message": "no endpoints"}, True, Exit.NOT_READY, "No pod is ready"),
        (404, {"kind": "Status", "message": 'services "x" not found'}, True, Exit.NOT_FOUND, "not found"),
        (403, {"kind": "Status", "message": "no"}, True, Exit.FAILED, "administrator"),
        (401, {"error": {"message": "no key"}}, True, Exit.FAILED, "port-forward"),
        (401, {"error": {"message": "no key"}}, False, Exit.FAILED, "no key"),
        (429, {"error": {"message": "The queue is full"}}, True, Exit.NOT_READY, "full. Try again in 9 s"),
        (503, {"error": {"message": "It drains."}}, False, Exit.NOT_READY, "It drains. Try again in 9 s"),
        (400, {"error": {"message": "size is wrong"}}, False, Exit.FAILED, "size is wrong."),
        (500, {"error": {"message": "It failed."}}, False, Exit.FAILED, "request id abc"),
        (200, {"kind": "Status"}, False, Exit.FAILED, "is --url right"),
        (502, "<html>", False, Exit.FAILED, "is --url right"),
    ],
)
def test_a_refusal_ends_by_its_row(status: int, body: object, proxied: bool, code: Exit, words: str) -> None:
    headers = {"Retry-After": "9", "x-request-id": "abc"}
    ended = edit_errors.refusal(status, headers, json.dumps(body).encode(), proxied=proxied)
    assert ended.code == code
    assert words in ended.message


@pytest.mark.parametrize(
    ("param", "message", "words"),
    [
        ("image", "image is not a PNG, JPEG or WebP picture.", "a/in.gif is not a PNG, JPEG or WebP picture."),
        ("image", "The picture has 9 pixels.", "a/in.gif: The picture has 9 pixels."),
        ("prompt", "prompt is empty.", "prompt is empty."),
        (None, "image is odd.", "image is odd."),
    ],
)
def test_what_is_wrong_with_the_picture_names_its_file(param: str | None, message: str, words: str) -> None:
    error = {"code": "invalid_image", "param": param, "message": message}
    assert edit_errors.of_server(error, status=400, picture="a/in.gif").message == words


def test_a_worker_that_was_lost_in_the_middle_is_worth_another_try() -> None:
    ended = edit_errors.of_server({"message": "The worker was lost.", "code": "worker_lost"}, status=200)
    assert ended.code == Exit.NOT_READY


@pytest.mark.parametrize(
    ("name", "kind"), [("out.png", "png"), ("out.JPG", "jpeg"), ("out.jpeg", "jpeg"), ("out.webp", "webp")]
)
def test_the_result_s_name_is_its_format(tmp_path: Path, name: str, kind: str) -> None:
    assert edit_files.output(tmp_path / "in.png", tmp_path / name, force=False).format == kind


def test_without_a_name_the_result_lies_beside_the_picture(tmp_path: Path) -> None:
    assert edit_files.output(tmp_path / "in.jpg", None, force=False).path == tmp_path / "in-edited.png"


def test_a_file_that_exists_is_written_over_only_with_force(tmp_path: Path) -> None:
    out = tmp_path / "out.png"
    out.write_bytes(b"old")
    with pytest.raises(CommandFailed, match="--force"):
        edit_files.output(tmp_path / "in.png", out, force=False)
    edit_files.save(edit_files.output(tmp_path / "in.png", out, force=True).path, b"new")
    assert out.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("name", ["out.gif", "out", "no/out.png"])
def test_another_kind_of_file_or_no_folder_is_wrong_usage(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandFailed) as refused:
        edit_files.output(tmp_path / "in.png", tmp_path / name, force=False)
    assert refused.value.code == Exit.USAGE


def test_a_picture_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed) as refused:
        edit_files.picture(tmp_path / "absent.png")
    assert refused.value.code == Exit.USAGE


async def test_a_key_without_an_address_is_wrong_usage(tmp_path: Path) -> None:
    picture = tmp_path / "in.png"
    picture.write_bytes(b"x")
    with pytest.raises(CommandFailed, match="port-forward") as refused:
        await edit.run(arguments.parse(["edit", str(picture), "blue", "--api-key-file", "key"]))
    assert refused.value.code == Exit.USAGE


def test_two_files_for_one_result_are_wrong_usage() -> None:
    with pytest.raises(SystemExit) as ended:
        arguments.parse(["edit", "in.png", "blue", "-o", "a.png", "-o", "b.png"])
    assert ended.value.code == Exit.USAGE


def test_a_key_file_may_have_comments(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("# of the team\n\nsesame # since May\n")
    assert edit_files.key(file) == "sesame"


def test_only_what_was_asked_for_is_sent() -> None:
    plain = edit.form_fields(arguments.parse(["edit", "in.png", "blue"]), "png")
    asked = edit.form_fields(arguments.parse(["edit", "in.png", "blue", "--seed", "0", "--size", "auto"]), "jpeg")
    assert plain == {"prompt": "blue", "output_format": "png", "stream": "true"}
    assert asked == {"prompt": "blue", "size": "auto", "seed": "0", "output_format": "jpeg", "stream": "true"}


@pytest.mark.parametrize(
    ("flags", "out", "json_asked"),
    [
        ([], None, False),
        (["-o", "x.png"], Path("x.png"), False),
        (["-o", "json"], None, True),
        (["-o", "x.png", "-o", "json"], Path("x.png"), True),
    ],
)
def test_o_is_the_file_and_json_besides(flags: list[str], out: Path | None, json_asked: bool) -> None:
    asked = arguments.parse(["edit", "in.png", "blue", *flags])
    assert (asked.out, asked.json) == (out, json_asked)
