"""Facts about results that are kept as files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imageedit_server.api.clock import steady_clock
from imageedit_server.api.files import FileLimits, ResultFiles, result_files
from imageedit_server.errors import SettingsInvalid
from imageedit_server.settings import settings_from


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.s = 1_000_000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def files_in(folder: Path, clock: Clock, *, ttl_s: float = 60, max_count: int = 3, max_bytes: int = 100) -> ResultFiles:
    return ResultFiles(folder, FileLimits(ttl_s=ttl_s, max_count=max_count, max_bytes=max_bytes), now_s=clock)


def saved(files: ResultFiles, clock: Clock, *contents: bytes) -> list[str]:
    """Save one file a second."""
    names = []
    for content in contents:
        clock.s += 1
        names.append(files.save(content, "png"))
    return names


def test_a_file_comes_back_as_it_was_saved(tmp_path: Path, clock: Clock) -> None:
    files = files_in(tmp_path, clock)

    assert files.read(files.save(b"pixels", "webp")) == b"pixels"


def test_names_are_long_different_and_end_in_the_kind(tmp_path: Path, clock: Clock) -> None:
    files = files_in(tmp_path, clock)
    names = {files.save(b"pixels", "jpeg") for _ in range(3)}

    assert len(names) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{32}\.jpeg", name) for name in names)


def test_a_file_expires(tmp_path: Path, clock: Clock) -> None:
    files = files_in(tmp_path, clock)
    name = files.save(b"pixels", "png")
    clock.s += 59.9
    assert files.read(name) == b"pixels"
    clock.s += 0.1

    assert files.read(name) is None


def test_expired_files_are_deleted_at_the_next_save_and_at_the_start(tmp_path: Path, clock: Clock) -> None:
    saved(files_in(tmp_path, clock), clock, b"a", b"b")
    clock.s += 60
    (last,) = saved(files_in(tmp_path, clock), clock, b"c")
    assert [path.name for path in tmp_path.iterdir()] == [last]
    clock.s += 60
    files_in(tmp_path, clock).sweep()

    assert list(tmp_path.iterdir()) == []


def test_the_oldest_makes_room_for_one_too_many(tmp_path: Path, clock: Clock) -> None:
    files = files_in(tmp_path, clock)
    names = saved(files, clock, b"a", b"b", b"c", b"d")

    assert [files.read(name) for name in names] == [None, b"b", b"c", b"d"]


def test_the_oldest_make_room_for_bytes(tmp_path: Path, clock: Clock) -> None:
    files = files_in(tmp_path, clock)
    names = saved(files, clock, b"a" * 40, b"b" * 40, b"c" * 70)

    assert [files.read(name) is None for name in names] == [True, True, False]


def test_files_outlive_a_restart(tmp_path: Path, clock: Clock) -> None:
    name = files_in(tmp_path, clock).save(b"pixels", "png")

    assert files_in(tmp_path, clock).read(name) == b"pixels"


@pytest.mark.parametrize(
    "name", ["", "..", "../secret.png", "a.png", "notes.txt", "x" * 32 + ".gif", "x" * 32 + ".png"]
)
def test_no_other_name_is_read(tmp_path: Path, clock: Clock, name: str) -> None:
    (tmp_path / "notes.txt").write_text("private")
    (tmp_path / "a.png").write_text("private")

    assert files_in(tmp_path, clock).read(name) is None


def test_foreign_files_are_left_alone(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "notes.txt").write_text("private")
    files = files_in(tmp_path, clock, max_count=1, max_bytes=1)
    saved(files, clock, b"a", b"b")
    clock.s += 10_000
    files.sweep()

    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_was_left_half_written_goes_once_it_has_expired(tmp_path: Path, clock: Clock) -> None:
    left = tmp_path / ("." + "x" * 32 + ".png.part")
    left.write_bytes(b"half")
    clock.s = left.stat().st_mtime
    files_in(tmp_path, clock).sweep()
    assert left.exists()
    clock.s += 60
    files_in(tmp_path, clock).sweep()

    assert not left.exists()


def test_without_a_folder_there_are_no_files(clock: Clock) -> None:
    assert result_files(settings_from(["--model-dir", "demo", "--sizes", "64x64"], {}), now_s=clock) is None


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, clock: Clock) -> None:
    missing = str(tmp_path / "missing")
    made = settings_from(["--model-dir", "demo", "--sizes", "64x64", "--files-dir", missing], {})
    with pytest.raises(SettingsInvalid, match="missing cannot be used: No such file"):
        result_files(made, now_s=clock)


def test_a_clock_that_went_back_keeps_no_file_longer_than_its_time(tmp_path: Path, clock: Clock) -> None:
    name = files_in(tmp_path, clock).save(b"pixels", "png")
    clock.s -= 500_000
    files = files_in(tmp_path, clock)
    files.sweep()
    assert files.read(name) == b"pixels"
    clock.s += 60

    assert files.read(name) is None


def test_setting_the_clock_expires_nothing() -> None:
    wall, monotonic = Clock(), Clock()
    now_s = steady_clock(wall, monotonic)
    began_s = now_s()
    wall.s += 1e9
    monotonic.s += 5

    assert (began_s, now_s()) == (1_000_000.0, 1_000_005.0)
