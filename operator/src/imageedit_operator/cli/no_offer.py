"""Why no node offers a resource's pods any card, with the numbers of nodes: nothing of it is stored. Pure."""

from __future__ import annotations

from imageedit_operator.core import offer
from imageedit_operator.core.accelerator import Accelerator
from imageedit_operator.core.observed_cards import CardLedger


def nowhere(accelerator: Accelerator, ledger: CardLedger | None) -> str:
    """Why no node that takes the pods offers them cards; empty where one does, or nobody may know."""
    if ledger is None or ledger.offer is None:
        return ""
    return offer.nowhere(
        ledger.offer,
        accelerator.extended_resource,
        count=accelerator.count,
        labels=accelerator.node_selector,
        counted=True,
    )
