"""What a copy says of the disk and of its progress."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.prefetch.failures import CannotCopy, Failure, of_target
from imageedit_server.prefetch.progress import Progress, amount
from imageedit_server.prefetch.room import check_room

GB = 10**9


@pytest.mark.parametrize(
    ("needed_gb", "free_gb", "reserve_percent", "refused"),
    [
        (55, 60, 0, False),
        (60, 60, 0, False),
        (61, 60, 0, True),
        (55, 60, 10, True),
        (50, 60, 10, False),
        (0, 0, 10, False),
    ],
)
def test_a_copy_needs_its_room_beside_the_reserve(
    needed_gb: int, free_gb: int, reserve_percent: int, refused: bool
) -> None:
    said = room(needed_gb * GB, free_gb * GB, reserve_percent)
    assert (said is not None) == refused


def room(needed_bytes: int, free_bytes: int, reserve_percent: int) -> CannotCopy | None:
    try:
        check_room(
            needed_bytes=needed_bytes,
            free_bytes=free_bytes,
            disk_bytes=100 * GB,
            reserve_percent=reserve_percent,
            where="/data",
        )
    except CannotCopy as refusal:
        return refusal
    return None


def test_the_refusal_says_how_much_has_to_go() -> None:
    said = room(55 * GB, 60 * GB, 10)
    assert said is not None
    assert said.failure is Failure.DISK_FULL
    assert said.message == (
        "/data has 60.0 GB free, of which 10.0 GB have to stay free, and 55.0 GB are to be copied;"
        " free 5.0 GB on this disk, or name a folder on another one"
    )


@given(st.integers(1, 200 * GB), st.integers(0, 100 * GB), st.integers(0, 90))
def test_after_an_allowed_copy_the_reserve_is_still_free(needed: int, free: int, percent: int) -> None:
    if room(needed, free, percent) is None:
        assert free - needed >= 100 * GB * percent // 100


def test_progress_is_said_every_ten_seconds_with_rate_and_rest() -> None:
    said: list[str] = []
    times = iter([0.0, 4.0, 10.0, 15.0, 20.0])
    progress = Progress(40 * GB, say=said.append, clock=lambda: next(times))
    for _ in range(4):
        progress.add("vae/x.safetensors", 4 * GB)
    assert said == [
        "8.0 GB of 40.0 GB, 800.0 MB/s, about 40 s left: vae/x.safetensors",
        "16.0 GB of 40.0 GB, 800.0 MB/s, about 30 s left: vae/x.safetensors",
    ]


@pytest.mark.parametrize(
    ("size_bytes", "said"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (2.5e6, "2.5 MB"), (3e12, "3000.0 GB")],
)
def test_amounts_are_said_in_decimal_units(size_bytes: float, said: str) -> None:
    assert amount(size_bytes) == said


@pytest.mark.parametrize(
    ("number", "failure"),
    [
        (errno.ENOSPC, Failure.DISK_FULL),
        (errno.EDQUOT, Failure.DISK_FULL),
        (errno.EIO, Failure.COPY_FAILED),
        (errno.ESTALE, Failure.COPY_FAILED),
        (errno.EACCES, Failure.TARGET_UNUSABLE),
        (errno.EROFS, Failure.TARGET_UNUSABLE),
        (errno.ENOTDIR, Failure.TARGET_UNUSABLE),
    ],
)
def test_what_the_file_system_says_decides_whether_another_try_helps(number: int, failure: Failure) -> None:
    assert of_target(OSError(number, "no"), "/data/x").failure is failure
