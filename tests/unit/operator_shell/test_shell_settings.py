"""Settings: the flag wins over the environment, and nonsense is refused with its name."""

from __future__ import annotations

import pytest

from imageedit_operator.errors import SettingsInvalid
from imageedit_operator.settings import Settings, load


def test_defaults_serve_the_whole_cluster() -> None:
    assert load([], {}) == Settings()


def test_the_environment_sets_a_flag() -> None:
    assert load([], {"IMAGEEDIT_OPERATOR_RESYNC": "30"}).resync_s == 30


def test_a_flag_wins_over_the_environment() -> None:
    assert load(["--workers", "3"], {"IMAGEEDIT_OPERATOR_WORKERS": "5"}).workers == 3


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), (" , ", ()), ("a", ("a",)), ("a, b-2", ("a", "b-2")), ("a,a", ("a",))],
)
def test_namespaces_are_a_comma_list_without_repeats(text: str, names: tuple[str, ...]) -> None:
    assert load(["--namespaces", text], {}).namespaces == names


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--namespaces", "team-*"),
        ("--namespaces", "Team"),
        ("--namespaces", "x" * 64),
        ("--workers", "0"),
        ("--workers", "2.5"),
        ("--workers", "65"),
        ("--resync", "0.5"),
        ("--resync", "nan"),
        ("--resync", "soon"),
        ("--http-port", "70000"),
        ("--log-level", "loud"),
        ("--auto-injection", "Auto"),
        ("--runtime-class", "Ascend Runtime"),
        ("--reconcile-timeout", "inf"),
        ("--shutdown", "-1"),
        ("--request-timeout", "0"),
    ],
)
def test_a_value_out_of_range_names_its_flag(flag: str, text: str) -> None:
    with pytest.raises(SettingsInvalid, match=flag):
        load([flag, text], {})


def test_a_request_may_not_outlast_its_pass() -> None:
    with pytest.raises(SettingsInvalid, match="--request-timeout"):
        load(["--request-timeout", "50", "--reconcile-timeout", "20"], {})
