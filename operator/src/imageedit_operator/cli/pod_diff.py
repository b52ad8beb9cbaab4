"""What a change of the spec changes in the pods of its revision, as the lines of a diff. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import yaml

from imageedit_operator.core import manifests
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.resource import ImageEditDeployment, parse
from imageedit_operator.core.revision import revision_hash

Raw = Mapping[str, Any]


def pod_diff(live: Raw | None, resource: ImageEditDeployment) -> tuple[str, ...]:
    """Only what differs: names and labels with the hash in them are replaced by a word."""
    try:
        before = [] if live is None else _pod_lines(parse(live))
    except InvalidResource:
        before = []
    if not before:
        return ()
    lines = difflib.unified_diff(before, _pod_lines(resource), "before", "after", n=2, lineterm="")
    return tuple(lines)


def _pod_lines(resource: ImageEditDeployment) -> list[str]:
    hash_ = revision_hash(resource)
    whole = manifests.deployment(resource, hash_)["spec"]["template"]
    if resource.template.given:
        whole = {**whole, "spec.template, merged by the apiserver": resource.template.manifest()}
    return [line.replace(hash_, "REVISION") for line in yaml.safe_dump(whole, sort_keys=True, width=1000).splitlines()]
