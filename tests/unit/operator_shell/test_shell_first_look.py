"""What the first list of a term spares the looks that follow it."""

from __future__ import annotations

import pytest

from imageedit_operator.core.resource import parse
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.first_look import LONGEST_S, FirstLook, Shown, nothing_shown
from imageedit_operator.kube.kept import Kept
from imageedit_operator.kube.kinds import BUDGETS, DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, SERVICES, Resource
from imageedit_operator.wake_ups import Told
from imageedit_operator.workqueue import Key
from unit.operator_shell.builders import custom_resource, deployment, owner, pod

KEY = Key("team", "edit")


class Clock:
    """Seconds, set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def listed(clock: Clock, *, kept: Kept | None = None) -> FirstLook:
    """After a list that showed one resource with a Deployment and a pod."""
    look = FirstLook(clock=clock, kept=kept or Kept(clock=clock))
    look.begin()
    look.show(IMAGE_EDIT_DEPLOYMENTS, custom_resource())
    look.show(DEPLOYMENTS, deployment())
    look.show(PODS, pod())
    look.end(whole=True)
    return look


def test_the_look_is_made_with_what_the_list_showed() -> None:
    assert listed(Clock()).take(KEY) == Shown(resource=custom_resource(), deployments=[deployment()], pods=[pod()])


def test_a_second_look_at_the_resource_reads_it() -> None:
    look = listed(Clock())
    look.take(KEY)
    assert look.take(KEY) is None


@pytest.mark.parametrize(("age_s", "made"), [(LONGEST_S - 1, True), (LONGEST_S, False)])
def test_a_look_that_comes_late_reads_the_resource(age_s: float, made: bool) -> None:
    clock = Clock()
    look = listed(clock)
    clock.now += age_s
    assert (look.take(KEY) is not None) == made


def test_a_resource_that_is_not_in_the_list_is_read() -> None:
    assert listed(Clock()).take(Key("team", "other")) is None
    assert nothing_shown().take(KEY) is None


def test_pods_of_a_resource_that_the_list_does_not_show_make_no_look() -> None:
    look = FirstLook(clock=Clock(), kept=Kept(clock=Clock()))
    look.begin()
    look.show(PODS, pod())
    look.end(whole=True)
    assert not look.awaits(KEY)
    assert look.take(KEY) is None


def event(*, uid: str = "uid-edit-abc", version: str = "7", gone: bool = False) -> Told:
    """Of a Deployment of the resource."""
    return Told(key=KEY, kind=DEPLOYMENTS, uid=uid, version=version, gone=gone, delay_s=0.0)


def test_what_the_list_showed_of_a_service_is_no_news() -> None:
    look = FirstLook(clock=Clock(), kept=Kept(clock=Clock()))
    look.begin()
    look.show(IMAGE_EDIT_DEPLOYMENTS, custom_resource())
    look.show(SERVICES, child("edit"))
    look.end(whole=True)
    told = Told(key=KEY, kind=SERVICES, uid="uid-edit", version="3", gone=False, delay_s=0.0)
    assert not look.news(told)
    assert look.news(told._replace(version="4"))


def test_what_a_list_showed_that_failed_is_forgotten() -> None:
    look = FirstLook(clock=Clock(), kept=Kept(clock=Clock()))
    look.begin()
    look.show(IMAGE_EDIT_DEPLOYMENTS, custom_resource())
    look.show(DEPLOYMENTS, deployment())
    look.begin()
    look.end(whole=True)
    assert look.news(event())
    assert look.take(KEY) is None


def test_of_a_list_that_is_not_whole_nothing_counts() -> None:
    look = FirstLook(clock=Clock(), kept=Kept(clock=Clock()))
    look.begin()
    look.show(IMAGE_EDIT_DEPLOYMENTS, custom_resource())
    look.show(DEPLOYMENTS, deployment())
    look.end(whole=False)
    assert look.news(event())
    assert look.take(KEY) is None


TELLING = pytest.mark.parametrize(
    ("told", "age_s", "news"),
    [
        pytest.param(event(), 0.0, False, id="the version that was listed"),
        pytest.param(event(), LONGEST_S, True, id="the same, a minute later"),
        pytest.param(event(version="8"), 0.0, True, id="another version"),
        pytest.param(event(uid="uid-of-another"), 0.0, True, id="another object"),
        pytest.param(event(gone=True), 0.0, True, id="the end of an object"),
    ],
)


@TELLING
def test_an_event_is_no_news_at_the_version_that_the_list_showed(told: Told, age_s: float, news: bool) -> None:
    clock = Clock()
    look = listed(clock)
    look.take(KEY)
    clock.now += age_s
    assert look.news(told) == news


@TELLING
def test_after_an_event_that_is_news_the_first_look_reads_the_resource(told: Told, age_s: float, news: bool) -> None:
    clock = Clock()
    look = listed(clock)
    clock.now += age_s
    look.news(told)
    assert look.awaits(KEY) == (not news)
    assert (look.take(KEY) is None) == news


def test_after_an_event_that_is_news_the_look_reads_what_nobody_watches_too() -> None:
    clock = Clock()
    kept = Kept(clock=clock)
    look = listed(clock, kept=kept)
    look.show(SERVICES, child("edit"))
    look.news(event(version="8"))
    kept.begin(KEY)
    assert kept.get(SERVICES, parse(custom_resource())) is None


def test_before_the_list_has_ended_every_event_is_news_and_every_look_reads() -> None:
    look = FirstLook(clock=Clock(), kept=Kept(clock=Clock()))
    look.begin()
    look.show(IMAGE_EDIT_DEPLOYMENTS, custom_resource())
    look.show(DEPLOYMENTS, deployment())
    assert look.take(KEY) is None
    assert look.news(event())


@pytest.mark.parametrize("of_this_list", [True, False])
@pytest.mark.parametrize("by", ["a look", "an event"])
def test_what_is_known_before_a_list_ends_is_newer_than_what_it_shows(by: str, of_this_list: bool) -> None:
    clock = Clock()
    kept = Kept(clock=clock)
    look = FirstLook(clock=clock, kept=kept)
    look.begin()
    look.show(IMAGE_EDIT_DEPLOYMENTS, custom_resource())
    if by == "a look":
        look.take(KEY)
    else:
        look.news(event())
    if not of_this_list:
        look.begin()
    look.show(IMAGE_EDIT_DEPLOYMENTS, custom_resource())
    look.show(SERVICES, child("edit"))
    look.end(whole=True)
    assert look.take(KEY) is None
    assert kept.get(SERVICES, parse(custom_resource())) is None


def test_a_first_look_is_awaited_until_it_is_made() -> None:
    look = listed(Clock())
    assert look.awaits(KEY)
    look.take(KEY)
    assert not look.awaits(KEY)


def child(name: str) -> Manifest:
    about = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "resourceVersion": "3",
        "ownerReferences": [owner()],
    }
    return {"metadata": {**about, "labels": {"imageedit.dev/deployment": "edit"}}}


@pytest.mark.parametrize("kind", [SERVICES, BUDGETS])
@pytest.mark.parametrize(("name", "kept_now"), [("edit", True), ("another", False)])
def test_the_service_and_the_budget_of_its_name_are_kept_for_the_resource(
    kind: Resource, name: str, kept_now: bool
) -> None:
    clock = Clock()
    kept = Kept(clock=clock)
    look = listed(clock, kept=kept)
    look.show(kind, child(name))
    found = kept.get(kind, parse(custom_resource()))
    assert found == (child(name) if kept_now else None)
