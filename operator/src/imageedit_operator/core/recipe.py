"""The resource as it asked for an earlier revision: what of the spec made that one is noted on its Deployment.

Anybody who may write Deployments may have written the note: it counts only where it makes the revision of its name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from imageedit_operator.core.accelerator import parse_accelerator
from imageedit_operator.core.fields import InvalidResource, nested_deeper
from imageedit_operator.core.resource import ImageEditDeployment, parse_model
from imageedit_operator.core.revision import RECIPE
from imageedit_operator.core.server_spec import parse_server
from imageedit_operator.core.template_spec import parse_template

Raw = Mapping[str, Any]

PARTS = ("model", "server", "accelerator")
"""The parts of a spec that every revision is made of."""
TEMPLATE = "template"
"""The part that most have not."""
DEEPEST = 64
"""More than any spec nests."""


def noted(deployment: Raw) -> Raw | None:
    """The recipe of a revision's Deployment; None where an older operator made it, or it cannot be read."""
    text = (deployment["metadata"].get("annotations") or {}).get(RECIPE)
    try:
        recipe = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    if nested_deeper(recipe, DEEPEST):
        return None
    return recipe if isinstance(recipe, dict) and all(isinstance(recipe.get(part), dict) for part in PARTS) else None


# | of the resource                                        | is that of  |
# | model, server, accelerator, template, restarted-at     | the recipe  |
# | else, and what the operator was told about the cluster | the present |
def remade(resource: ImageEditDeployment, recipe: Raw) -> ImageEditDeployment | None:
    """The resource with this recipe in it; None where that is no spec for this operator."""
    try:
        return replace(
            resource,
            model=parse_model(recipe["model"]),
            server=parse_server(recipe["server"]),
            accelerator=parse_accelerator(recipe["accelerator"], resource.accelerator.auto),
            template=parse_template(recipe),
            restarted_at=str(recipe.get("restartedAt") or ""),
        )
    except (InvalidResource, AttributeError, KeyError, TypeError, ValueError):
        return None  # no schema has looked at it, and the parsers rely on one
