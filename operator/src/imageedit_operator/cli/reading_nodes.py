"""Reads the nodes for pods that ask for no card by name, with the rights of whoever plans them."""

from __future__ import annotations

from imageedit_operator.cli.nodes import UNASKED, Nodes
from imageedit_operator.core.resource import ImageEditDeployment
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kinds import NODES
from imageedit_operator.kube.node_cards import offer_of_all


async def read(kube: Kube, resource: ImageEditDeployment) -> Nodes:
    """What keeps the pods off every node; not asked where the ledger of cards tells it. Raises ApiError."""
    if resource.accelerator.extended_resource:
        return UNASKED
    try:
        found = [node async for page in kube.pages(NODES) for node in page]
    except ApiError as error:
        if error.forbidden:
            return Nodes(unread=error.message)
        raise
    return Nodes(closed=offer_of_all(found, resource.accelerator.place()))
