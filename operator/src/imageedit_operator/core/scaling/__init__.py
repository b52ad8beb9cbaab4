"""Autoscaling on the queue: a pure decision and the small memory that it needs."""

from imageedit_operator.core.scaling.decide import Decision, decide
from imageedit_operator.core.scaling.window import Memory

__all__ = ["Decision", "Memory", "decide"]
