"""The name of a revision: a hash over exactly the fields that force new pods."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from imageedit_operator.core.resource import ImageEditDeployment

HASH_LENGTH = 10


def revision_hash(resource: ImageEditDeployment) -> str:
    """Ten hexadecimal digits, safe in a DNS label and in a label value.

    | field | a change |
    | --- | --- |
    | spec.model.* | rolls |
    | spec.server.* | rolls |
    | spec.accelerator.* | rolls |
    | spec.replicas, spec.autoscaling, spec.rollout | takes effect on the pods that run |
    | metadata, labels and the operator's own version | nothing |

    Hashed are the meanings and not the manifest: a default that is written out, and sizes
    in another order (the list is a set), are the same revision.
    """
    text = json.dumps(_identity(resource), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
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
        },
        "server": {
            "image": server.image,
            "sizes": sorted(server.sizes),
            "steps": server.steps,
            "queue": server.queue_hard_limit,
        },
        "accelerator": [accelerator.device, accelerator.resource_name, accelerator.count],
    }
