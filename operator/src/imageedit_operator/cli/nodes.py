"""Whether a node takes pods that ask for no card by name, and what a plan makes of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from imageedit_operator.core.offer import Offer, no_node, reasons
from imageedit_operator.core.resource import ImageEditDeployment


@dataclass(frozen=True, kw_only=True, slots=True)
class Nodes:
    """What was seen of the nodes."""

    closed: Offer | None = None
    """Why none takes the pods; None where one does, where there is none yet, or where the ledger of cards tells it."""
    unread: str = ""
    """Why they were not read."""


UNASKED = Nodes()


def warnings(resource: ImageEditDeployment, nodes: Nodes) -> tuple[str, ...]:
    """That no node takes the pods, and what to look at."""
    return () if nodes.closed is None else (no_node(nodes.closed, resource.accelerator.node_selector),)


def unplaced_words(nodes: Nodes) -> str:
    """What the scheduler will say of each pod; empty where a node takes it."""
    if nodes.closed is None:
        return ""
    said = ", ".join(f"{nodes.closed.nodes} {words}" for words in reasons(nodes.closed))
    none = f"0/{nodes.closed.nodes} nodes are available"
    return f"{none}: {said}. preemption: {none}: {nodes.closed.nodes} {_NOT_HELPFUL}"


def assumed(resource: ImageEditDeployment, nodes: Nodes) -> tuple[str, ...]:
    """What is taken for granted of nodes that were not read, where the spec asks something of them."""
    if not nodes.unread or not resource.accelerator.node_selector:
        return ()
    return (f"nodes were not seen, and one is taken to have the labels of nodeSelector: {nodes.unread}",)


_NOT_HELPFUL = "Preemption is not helpful for scheduling."
