"""Resources from a file of manifests, as kubectl reads them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from imageedit_operator.cli.exits import CommandFailed, Exit
from imageedit_operator.kube.client import Manifest

KIND = ("imageedit.dev/v1alpha1", "ImageEditDeployment")


def load(name: str) -> list[Manifest]:
    """The ImageEditDeployments of a YAML or JSON file, or of stdin for `-`. Raises CommandFailed."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not a text"
        raise CommandFailed(Exit.USAGE, f"{name} cannot be read: {why}.") from error
    return parse(text, name)


def parse(text: str, name: str) -> list[Manifest]:
    """The same for a text; `name` is for the message."""
    try:
        documents = list(_single(yaml.safe_load_all(text)))
    except yaml.YAMLError as error:
        where = " ".join(str(error).split())
        raise CommandFailed(Exit.USAGE, f"{name} is not YAML: {where}.") from error
    found = [item for item in documents if (item.get("apiVersion"), item.get("kind")) == KIND]
    if not found:
        raise CommandFailed(Exit.USAGE, f"{name} holds no ImageEditDeployment of imageedit.dev/v1alpha1.")
    for item in found:
        metadata = item.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name") or not isinstance(item.get("spec"), dict):
            raise CommandFailed(Exit.USAGE, f"{name}: an ImageEditDeployment has no metadata.name, or no spec.")
    return found


def _single(documents: Iterable[Any]) -> Iterator[Manifest]:
    """Documents, and the items of Lists among them."""
    for document in documents:
        if not isinstance(document, dict):
            continue
        if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
            yield from _single(document["items"])
        else:
            yield document
