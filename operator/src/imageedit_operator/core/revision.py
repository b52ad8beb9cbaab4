"""The name of a revision: a hash over exactly the fields that force new pods."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from imageedit_operator.core.resource import ImageEditDeployment

HASH_LENGTH = 10

RECIPE = "imageedit.dev/revision-spec"
"""Annotation of a Deployment: what of the spec made this revision, to go back to."""


def revision_hash(resource: ImageEditDeployment) -> str:
    """Ten hexadecimal digits, safe in a DNS label and in a label value.

    | field | a change |
    | --- | --- |
    | spec.model.* | rolls |
    | spec.server.* | rolls |
    | spec.accelerator.* | rolls |
    | spec.template.* | rolls |
    | annotation imageedit.dev/restarted-at | rolls |
    | other fields of spec | takes effect on the pods that run |
    | metadata, labels and the operator's own version | nothing |

    Hashed are the meanings and not the manifest: a default that is written out, and sizes
    in another order (the list is a set), are the same revision.
    """
    text = json.dumps(_identity(resource), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return _digest(text)


def recipe(resource: ImageEditDeployment) -> str:
    """The fields of the spec that make the revision, as JSON that can be put back into a spec.

    `restartedAt`, where there is one, is the annotation that is part of the revision too.
    """
    made: dict[str, Any] = {
        "model": resource.model.manifest(),
        "server": resource.server.manifest(),
        "accelerator": resource.accelerator.manifest(),
        **({"template": resource.template.manifest()} if resource.template.given else {}),
        **({"restartedAt": resource.restarted_at} if resource.restarted_at else {}),
    }
    return json.dumps(made, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def files_key(resource: ImageEditDeployment) -> str:
    """Names the place and the revision of the model's files: under one key there is one digest.

    The demo checkpoint lies inside the image, so another image may have another one.
    """
    model, source = resource.model, resource.model.source
    place = [source.kind, source.claim_name, source.path, model.revision]
    if model.manifest_digest:  # who names the files' digest has changed them on purpose
        place.append(model.manifest_digest)
    if source.kind == "demo":
        place.append(resource.server.image)
    return _digest(json.dumps(place))


def copy_prefix(resource: ImageEditDeployment) -> str:
    """What the names of all local copies of this resource begin with; neither part can hold a dot."""
    return f"{resource.namespace}.{resource.name}."


def copy_of(prefix: str, files: str) -> str:
    """Name of the folder that the files of a `files_key` are copied to."""
    return prefix + files


def copy_name(resource: ImageEditDeployment) -> str:
    """Name of the folder that holds the local copy of the model's files."""
    return copy_of(copy_prefix(resource), files_key(resource))


def copy_key(resource: ImageEditDeployment) -> str:
    """Names the files together with the folder or claim that they are copied to; empty without `prefetch`."""
    prefetch = resource.model.prefetch
    if prefetch is None:
        return ""
    return _digest(json.dumps([files_key(resource), prefetch.kind, prefetch.path, prefetch.claim_name]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def deployment_name(resource_name: str, hash_: str) -> str:
    """The name of a revision's Deployment."""
    return f"{resource_name}-{hash_}"


def _identity(resource: ImageEditDeployment) -> dict[str, Any]:
    # A field that is added later must be left out here while it holds its default,
    # or an upgrade of the operator would restart every pod.
    model, server, accelerator = resource.model, resource.server, resource.accelerator
    return {
        "model": {
            "name": model.name,
            "revision": model.revision,
            "source": [model.source.kind, model.source.claim_name, model.source.path],
            **({"digest": model.manifest_digest} if model.manifest_digest else {}),
            **({"prefetch": model.prefetch.manifest()} if model.prefetch is not None else {}),
        },
        "server": {
            "image": server.image,
            "sizes": sorted(server.sizes),
            "steps": server.steps,
            "queue": server.queue_hard_limit,
            **({"more": server.additions()} if server.additions() else {}),
        },
        "accelerator": [
            *(accelerator.device, accelerator.resource_name, accelerator.count),
            *([accelerator.additions()] if accelerator.additions() else []),
        ],
        **({"template": resource.template.manifest()} if resource.template.given else {}),
        **({"restarted": resource.restarted_at} if resource.restarted_at else {}),
    }
