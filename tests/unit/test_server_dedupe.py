"""Which requests are taken for one that is here already."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.gate.dedupe import Attach, By, Conflict, Identity, Register


def identity(
    *,
    key: str | None = None,
    request_id: str | None = None,
    content: str = "picture and prompt",
    request: str = "all of it",
    scope: str = "a caller",
    retry: bool = False,
    may_retry: bool = True,
) -> Identity:
    return Identity(
        scope=scope,
        content=content,
        request=request,
        key=key,
        request_id=request_id,
        retry=retry,
        may_retry=retry or may_retry,
    )


def register(*known: Identity, keep_s: float = 300.0, keep_bytes: int = 100) -> Register:
    made = Register(keep_s=keep_s, keep_bytes=keep_bytes)
    for number, one in enumerate(known):
        made.add(f"job-{number}", one)
    return made


FIRST = identity(key="k", request_id="r")
OTHER = "another prompt"
TABLE = [
    (identity(key="k"), Attach(job_id="job-0", by=By.IDEMPOTENCY_KEY)),
    (identity(key="k", request_id="r", retry=True), Attach(job_id="job-0", by=By.IDEMPOTENCY_KEY)),
    (identity(key="k", content=OTHER), Conflict(job_id="job-0")),
    (identity(key="k", request_id="r", retry=True, content=OTHER), Conflict(job_id="job-0")),
    (identity(key="k", request="another mask"), Conflict(job_id="job-0")),
    (identity(key="new", request_id="r", retry=True), None),
    (identity(request_id="r", request="another mask"), Attach(job_id="job-0", by=By.REQUEST_ID)),
    (identity(retry=True, request="another mask"), Attach(job_id="job-0", by=By.CONTENT)),
    (identity(request_id="r"), Attach(job_id="job-0", by=By.REQUEST_ID)),
    (identity(request_id="r", content=OTHER), None),
    (identity(request_id="r", content=OTHER, retry=True), None),
    (identity(retry=True), Attach(job_id="job-0", by=By.CONTENT)),
    (identity(request_id="other", retry=True), Attach(job_id="job-0", by=By.CONTENT)),
    (identity(retry=True, content=OTHER), None),
    (identity(), None),
    (identity(key="k", scope="another caller"), None),
    (identity(request_id="r", scope="another caller"), None),
    (identity(retry=True, scope="another caller"), None),
]


@pytest.mark.parametrize(("asked", "expected"), TABLE)
def test_a_request_is_recognised_by_the_table(asked: Identity, expected: Attach | Conflict | None) -> None:
    assert register(FIRST).find(asked) == expected


def test_a_job_without_a_result_is_forgotten() -> None:
    known = register(FIRST)
    known.forget("job-0")

    assert known.find(identity(key="k", request_id="r", retry=True)) is None
    assert len(known) == 0


def test_forgetting_an_old_job_leaves_the_names_of_a_newer_one() -> None:
    known = register(identity(), identity())
    known.forget("job-0")

    assert known.find(identity(retry=True)) == Attach(job_id="job-1", by=By.CONTENT)


def test_a_result_is_kept_for_its_time() -> None:
    known = register(FIRST, keep_s=300.0)
    assert known.finished("job-0", result_bytes=10, now_s=1000.0) == []
    assert known.expire(1299.0) == []
    assert known.find(identity(key="k")) is not None

    assert known.expire(1300.0) == ["job-0"]
    assert known.find(identity(key="k")) is None


def test_the_oldest_results_go_when_they_are_too_many_bytes() -> None:
    known = register(*[identity(key=str(number), content=str(number)) for number in range(3)], keep_bytes=100)
    assert known.finished("job-1", result_bytes=50, now_s=1.0) == []
    assert known.finished("job-0", result_bytes=50, now_s=2.0) == []

    assert known.finished("job-2", result_bytes=50, now_s=3.0) == ["job-1"]
    assert known.kept_bytes == 100


def test_a_result_larger_than_all_that_may_be_kept_is_not_kept() -> None:
    assert register(FIRST, keep_bytes=100).finished("job-0", result_bytes=101, now_s=1.0) == ["job-0"]


def test_a_job_that_runs_is_known_for_as_long_as_it_runs() -> None:
    known = register(FIRST, keep_s=1.0, keep_bytes=0)

    assert known.expire(1e9) == []
    assert known.find(identity(key="k")) is not None


@pytest.mark.parametrize(
    ("asked", "attachable"),
    [
        (identity(may_retry=False), False),
        (identity(may_retry=True), True),
        (identity(key="k", may_retry=False), True),
        (identity(request_id="r", may_retry=False), True),
    ],
)
def test_only_what_could_come_again_is_worth_remembering(asked: Identity, attachable: bool) -> None:
    assert asked.attachable is attachable


@pytest.mark.parametrize(
    ("key", "request_id", "scope", "known"),
    [
        ("k", None, "a caller", True),
        (None, "r", "a caller", True),
        ("x", "x", "a caller", False),
        ("k", "r", "another caller", False),
        (None, None, "a caller", False),
    ],
)
def test_names_alone_tell_whether_a_job_is_here(
    key: str | None, request_id: str | None, scope: str, known: bool
) -> None:
    assert register(FIRST).knows(scope=scope, key=key, request_id=request_id) is known


names = st.none() | st.sampled_from("ab")
identities = st.builds(
    Identity,
    scope=st.sampled_from("xy"),
    content=st.sampled_from("mn"),
    key=names,
    request_id=names,
    retry=st.booleans(),
    may_retry=st.booleans(),
)
events = st.lists(st.tuples(st.sampled_from(["add", "finish", "forget", "expire"]), identities, st.integers(0, 9)))


@given(events)
def test_nobody_ever_gets_the_result_of_other_content_or_of_another_caller(
    happened: list[tuple[str, Identity, int]],
) -> None:
    known = Register(keep_s=5.0, keep_bytes=20)
    jobs: dict[str, Identity] = {}
    for now_s, (what, asked, number) in enumerate(happened):
        found = known.find(asked)
        if isinstance(found, Attach):
            assert (jobs[found.job_id].scope, jobs[found.job_id].content) == (asked.scope, asked.content)
        match what:
            case "add":
                jobs[f"{now_s}"] = asked
                known.add(f"{now_s}", asked)
            case "finish":
                known.finished(f"{number}", result_bytes=number, now_s=now_s)
            case "forget":
                known.forget(f"{number}")
            case _:
                known.expire(now_s)
        assert known.kept_bytes <= 20
