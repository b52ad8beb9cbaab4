"""`rollback` chooses the revision that a person means, and writes exactly what made it."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.cli import gitops, recipes
from imageedit_operator.cli.exits import CommandFailed, Exit, from_api
from imageedit_operator.cli.history_view import build, text
from imageedit_operator.cli.rollback_choice import choose, hash_of, recipe_of
from imageedit_operator.cli.screen import Screen
from imageedit_operator.errors import ApiError
from unit.operator_cli import builders
from unit.operator_cli.builders import NOW, deployment, resource, with_restart
from unit.operator_shell.builders import merge

A, B, C = (resource(name) for name in "abc")
KEPT = [deployment(A), deployment(B), deployment(C)]


def chosen(*, asked: str = "", present: Any = C, **status: Any) -> str:
    named = {name: builders.hash_of(value) for name, value in status.items()}
    found = choose(KEPT, named, asked=asked, present=builders.hash_of(present))
    return str(recipe_of(found)["model"]["revision"])


@pytest.mark.parametrize(
    ("arguments", "revision"),
    [
        ({"asked": builders.hash_of(A)[:5]}, "a"),
        ({"asked": "b"}, "b"),
        ({"lastGoodRevision": A}, "a"),
        ({"lastGoodRevision": C}, "b"),
        ({"lastGoodRevision": C, "failedRevision": B}, "a"),
        ({"present": A}, "c"),
    ],
)
def test_a_revision_is_chosen_by_its_row(arguments: dict[str, Any], revision: str) -> None:
    assert chosen(**arguments) == revision


@pytest.mark.parametrize(
    ("completed", "good", "failed", "revision"),
    [
        ({"a": 60}, "c", "", "a"),
        ({"a": 60, "b": 120}, "c", "", "a"),
        ({"a": 120, "b": 60}, "c", "", "b"),
        ({"a": 120, "b": 60}, "c", "b", "a"),
        ({"a": 120, "b": 60}, "a", "", "a"),
        ({"c": 60}, "c", "", "b"),
        ({}, "c", "", "b"),
    ],
)
def test_the_revision_that_was_complete_last_comes_before_those_that_only_have_its_files(
    completed: dict[str, float], good: str, failed: str, revision: str
) -> None:
    hashes = {name: builders.hash_of(resource(name)) for name in "abc"}
    marks = {name: {"completedAt": builders.at(age_s)} for name, age_s in completed.items()}
    entries = [{"hash": hash_, "digest": "sha256:1", **marks.get(name, {})} for name, hash_ in hashes.items()]
    status = {"revisions": entries, "lastGoodRevision": hashes[good], "failedRevision": hashes.get(failed)}
    found = choose(KEPT, status, asked="", present=hashes["c"])
    assert recipe_of(found)["model"]["revision"] == revision


@pytest.mark.parametrize(("warm", "revision"), [("a", "a"), ("ab", "b"), ("", "b")])
def test_of_what_an_older_operator_left_one_with_a_digest_comes_first(warm: str, revision: str) -> None:
    entries = [{"hash": builders.hash_of(resource(name)), "digest": "sha256:1"} for name in warm]
    status = {"lastGoodRevision": builders.hash_of(C), "revisions": [{"hash": builders.hash_of(B)}, *entries]}
    found = choose(KEPT, status, asked="", present=builders.hash_of(C))
    assert recipe_of(found)["model"]["revision"] == revision


def test_a_revision_that_is_not_kept_is_not_found_and_the_kept_ones_are_named() -> None:
    with pytest.raises(CommandFailed, match=builders.hash_of(A)) as refused:
        chosen(asked="zzzz")
    assert refused.value.code == Exit.NOT_FOUND


def test_a_beginning_of_several_hashes_is_wrong_usage() -> None:
    many = [deployment(resource(f"model-{number}")) for number in range(30)]
    first = [hash_of(item)[0] for item in many]
    twice = next(digit for digit in first if first.count(digit) > 1)
    with pytest.raises(CommandFailed) as refused:
        choose(many, {}, asked=twice, present="")
    assert refused.value.code == Exit.USAGE


def test_without_another_revision_there_is_nothing_to_go_back_to() -> None:
    with pytest.raises(CommandFailed) as refused:
        choose([deployment(A)], {}, asked="", present=builders.hash_of(A))
    assert refused.value.code == Exit.NOT_FOUND


def test_a_revision_of_an_older_operator_cannot_be_rebuilt() -> None:
    with pytest.raises(CommandFailed, match="older operator"):
        recipe_of(deployment(A, noted=False))


@pytest.mark.parametrize(
    "before",
    [
        resource("a"),
        resource("a", accelerator={"device": "cpu", "resourceName": ""}),
        resource("a", server={"image": "server:1", "sizes": ["128x128", "64x64"], "steps": {"standard": 8}}),
        resource("a", model={"name": "x", "revision": "1", "source": {"pvc": {"claimName": "c", "path": "p"}}}),
        with_restart(resource("a"), "2026-11-30T08:00:00Z"),
        resource("a", template={"metadata": {"labels": {"team": "a"}}, "spec": {"hostAliases": [{"ip": "10.0.0.1"}]}}),
    ],
)
@pytest.mark.parametrize(
    "now",
    [
        resource("b", replicas=3, rollout={"paused": True}),
        resource("b", model={"name": "q", "revision": "b", "source": {"hostPath": {"path": "/m"}}}),
        with_restart(resource("b"), "2026-11-30T09:00:00Z"),
        resource("b", template={"metadata": {"labels": {"other": "b"}}, "spec": {"schedulerName": "volcano"}}),
    ],
)
def test_the_patch_makes_the_earlier_revision_and_touches_nothing_else(before: Any, now: Any) -> None:
    recipe = recipe_of(deployment(before))
    assert recipes.makes(now, recipe, builders.hash_of(before))
    patched = with_restart(now, "")  # a copy
    patched["metadata"]["annotations"] = dict(now["metadata"]["annotations"])

    merge(patched, recipes.rollback_patch(now, recipe))

    assert builders.hash_of(patched) == builders.hash_of(before)
    for field in ("replicas", "rollout"):
        assert patched["spec"].get(field) == now["spec"].get(field)


CLAIM, FOLDER = {"pvc": {"claimName": "c"}}, {"hostPath": {"path": "/m"}}


@pytest.mark.parametrize(
    ("before", "now", "swapped"),
    [
        ({"source": CLAIM}, {"source": FOLDER}, ("spec.model.source",)),
        ({"source": CLAIM, "prefetch": FOLDER}, {"source": CLAIM, "prefetch": CLAIM}, ("spec.model.prefetch",)),
        ({"source": CLAIM}, {"source": {"pvc": {"claimName": "d", "path": "p"}}}, ()),
        ({"source": CLAIM, "prefetch": FOLDER}, {"source": CLAIM}, ()),
        ({"source": CLAIM}, {"source": CLAIM, "prefetch": FOLDER}, ()),
    ],
)
def test_another_member_in_place_of_one_is_noticed_in_the_patch(before: Any, now: Any, swapped: Any) -> None:
    good = resource(model={"name": "q", "revision": "a", **before})
    bad = resource(model={"name": "q", "revision": "b", **now})
    assert recipes.swaps(recipes.rollback_patch(bad, recipe_of(deployment(good)))) == swapped


def test_the_patch_is_bound_to_the_version_that_was_read() -> None:
    assert recipes.rollback_patch(B, recipe_of(deployment(A)))["metadata"]["resourceVersion"] == "17"


def test_a_recipe_that_makes_another_revision_is_noticed() -> None:
    assert not recipes.makes(B, recipe_of(deployment(A)), builders.hash_of(C))


def test_history_tells_what_changed_from_one_revision_to_the_next() -> None:
    first, second, _ = build(C, KEPT, now=NOW)
    assert first.changes == ()
    assert [(change.field, change.before, change.after) for change in second.changes] == [("model.revision", "a", "b")]


def test_history_says_how_long_ago_a_revision_was_complete_and_nothing_of_one_that_never_was() -> None:
    entries = [{"hash": builders.hash_of(A), "completedAt": builders.at(7200)}, {"hash": builders.hash_of(B)}]
    views = build(resource("b", status={"revisions": entries}), KEPT[:2], now=NOW)
    assert [view.completed_ago_s for view in views] == [7200.0, None]
    head, first, second = text(views, Screen()).splitlines()
    column = slice(head.index("COMPLETED"), head.index("DIGEST"))
    assert (first[column].strip(), second[column].strip()) == ("2h ago", "")


def test_history_says_which_revision_cannot_be_restored() -> None:
    old, new = build(B, [deployment(A, noted=False), deployment(B)], now=NOW)
    assert (old.restorable, new.restorable, new.changes) == (False, True, ())


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        (
            {"annotations": {"argocd.argoproj.io/tracking-id": "shop:imageedit.dev/x:team/edit"}},
            "Argo CD application shop",
        ),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, "Flux Kustomization apps"),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "shop"}}, "Flux HelmRelease shop"),
        ({"annotations": {"meta.helm.sh/release-name": "shop"}}, "Helm release shop"),
        ({}, ""),
    ],
)
def test_who_else_writes_the_resource_is_named(metadata: dict[str, Any], owner: str) -> None:
    assert gitops.owner({"metadata": metadata}) == owner
    assert (owner or "If the resource comes from a repository") in gitops.advice({"metadata": metadata}, "it")


@pytest.mark.parametrize(
    ("status", "reason", "message", "code", "words"),
    [
        (0, "Unreachable", "refused", Exit.FAILED, "does not answer"),
        (401, "Unauthorized", "Unauthorized", Exit.FAILED, "administrator"),
        (403, "Forbidden", "no", Exit.FAILED, "administrator"),
        (404, "Http404", "404 page not found", Exit.NOT_FOUND, "install the operator"),
        (404, "NotFound", 'namespaces "x" not found', Exit.NOT_FOUND, 'namespaces "x" not found'),
        (409, "Conflict", "modified", Exit.FAILED, "Try again"),
        (422, "Invalid", "spec.replicas: wrong", Exit.FAILED, "spec.replicas: wrong"),
    ],
)
def test_a_refusal_of_the_cluster_ends_by_its_row(
    status: int, reason: str, message: str, code: Exit, words: str
) -> None:
    ended = from_api(ApiError(status=status, reason=reason, message=message))
    assert ended.code == code
    assert words in ended.message
