"""Facts about multipart/form-data: what comes back, what is refused, and how little a crafted body can make of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.api.forms import MAX_PART_HEAD_BYTES, MAX_PARTS, MAX_TEXT_BYTES, parts_of
from imageedit_server.api.slices import SLICE_BYTES, find, more_than
from imageedit_server.errors import InvalidInput


def encoded_form(parts: list[tuple[str, bytes]], boundary: bytes = b"b0und") -> bytes:
    lines = b""
    for name, data in parts:
        disposition = f'Content-Disposition: form-data; name="{name}"; filename="../../etc/passwd"\r\n\r\n'
        lines += b"--" + boundary + b"\r\n" + disposition.encode() + data + b"\r\n"
    return lines + b"--" + boundary + b"--\r\n"


KIND = "multipart/form-data; boundary=b0und"


@given(
    st.lists(st.tuples(st.sampled_from(["image[]", "prompt", "é"]), st.binary(max_size=200)), min_size=1, max_size=5)
)
def test_a_form_comes_back_as_it_was_sent(sent: list[tuple[str, bytes]]) -> None:
    parts = parts_of(encoded_form(sent), KIND)

    assert [(part.name, part.data) for part in parts] == sent


def test_a_part_longer_than_a_slice_comes_back_whole() -> None:
    data = bytes(range(256)) * (SLICE_BYTES // 100)

    assert parts_of(encoded_form([("image", data)]), KIND)[0].data == data


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"", KIND),
        (b"{}", KIND),
        (b"{}", "application/json"),
        (b"{}", ""),
        (encoded_form([("a", b"b")]), "multipart/form-data"),
        (encoded_form([("a", b"b")])[:-12], KIND),
        (encoded_form([("", b"b")]), KIND),
        (encoded_form([("a", b"b")] * (MAX_PARTS + 1)), KIND),
        (encoded_form([("a", b"b")]), "multipart/form-data; boundary=" + "x" * 5000),
        (b"--b0und", KIND),
        (b"--b0und\r\n", KIND),
        (b"--b0und\r\nContent-Disposition: form-data; name=a\r\n--b0und--", KIND),
        (b"--b0undX\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--b0und--", KIND),
        (encoded_form([("a" * MAX_PART_HEAD_BYTES, b"b")]), KIND),
        (b"--b0und\r\nContent-Type: text/plain\r\n\r\nb\r\n--b0und--", KIND),
    ],
)
def test_a_malformed_form_is_refused(sent: bytes, kind: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parts_of(sent, kind)

    assert raised.value.code == "invalid_form"


@given(st.binary(max_size=300))
def test_rubbish_in_a_form_is_refused_or_read_but_never_crashes(rubbish: bytes) -> None:
    try:
        parts_of(b"--b0und\r\n" + rubbish + b"\r\n--b0und--\r\n", KIND)
    except InvalidInput as error:
        assert error.code == "invalid_form"  # noqa: PT017 - either outcome is right


def test_what_is_almost_a_boundary_belongs_to_the_file() -> None:
    data = b"\r\n--b0un\r\n--b0uns\r\n-\r\n--\r\n" * 1000

    assert parts_of(encoded_form([("image", data)]), KIND)[0].data == data


def test_a_boundary_across_two_slices_is_found() -> None:
    head = len(encoded_form([("image", b"")])) - len(b"\r\n--b0und--\r\n")
    for missing in range(12):
        data = b"x" * (SLICE_BYTES - head - missing)

        assert parts_of(encoded_form([("image", data)]), KIND)[0].data == data


def test_a_part_without_content_is_empty() -> None:
    body = b'--b0und\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n--b0und--'

    assert parts_of(body, KIND)[0].data == b""


def test_text_before_the_first_boundary_and_after_the_last_is_nothing() -> None:
    parts = parts_of(b"a preamble\r\n" + encoded_form([("a", b"b")]) + b"an epilogue", KIND)

    assert [(part.name, part.data) for part in parts] == [("a", b"b")]


def test_a_boundary_may_be_followed_by_white_space() -> None:
    sent = encoded_form([("a", b"b")]).replace(b"--b0und\r\n", b"--b0und \t\r\n", 1)

    assert parts_of(sent, KIND)[0].data == b"b"


@pytest.mark.parametrize("name", ["prompt", "what_nobody_knows"])
def test_a_text_field_that_is_too_long_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parts_of(encoded_form([("image", b"a"), (name, b"x" * (MAX_TEXT_BYTES + 1))]), KIND)

    assert (raised.value.code, raised.value.param) == ("invalid_parameter", name)


@pytest.mark.parametrize("name", ["image", "image[]", "mask"])
def test_a_file_may_be_longer_than_a_text(name: str) -> None:
    assert len(parts_of(encoded_form([(name, b"x" * (MAX_TEXT_BYTES + 1))]), KIND)[0].data) == MAX_TEXT_BYTES + 1


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_search_in_slices_finds_what_a_search_does(before: int, start: int) -> None:
    data = b"x" * (SLICE_BYTES - before) + b"wanted" + b"x" * 100

    assert find(data, b"wanted", start) == data.find(b"wanted", start)
    assert find(data, b"other", start) == -1


@pytest.mark.parametrize(("limit", "more"), [(2, True), (3, False)])
def test_characters_are_counted_over_all_slices(limit: int, more: bool) -> None:
    data = b"{" + b"x" * SLICE_BYTES + b"," + b"x" * SLICE_BYTES + b"["

    assert more_than(data, limit, b",[{") is more
