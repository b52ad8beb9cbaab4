"""The rights that the plugin uses; the chart's roles for its users carry exactly these (tests/contract compares them).

Fewer are enough for less: docs/kubectl-plugin.md says which command needs what.
"""

from __future__ import annotations

from imageedit_operator.kube.access import Right

IN_NAMESPACE = (
    Right(group="imageedit.dev", resource="imageeditdeployments", verbs=("get", "list", "create", "patch")),
    Right(group="apps", resource="deployments", verbs=("get", "list")),
    Right(group="", resource="pods", verbs=("list",)),
    Right(group="", resource="pods/proxy", verbs=("get",)),
    Right(group="", resource="services", verbs=("get",)),
    Right(group="", resource="services/proxy", verbs=("create",)),
    Right(group="batch", resource="jobs", verbs=("list",)),
    Right(group="policy", resource="poddisruptionbudgets", verbs=("get", "list")),
    Right(group="", resource="persistentvolumeclaims", verbs=("get",)),
    Right(group="resource.k8s.io", resource="resourceclaimtemplates", verbs=("get",)),
    Right(group="events.k8s.io", resource="events", verbs=("list",)),
)
"""Where its user's resources are. `create`, because a plan of a resource that is not there yet is tried, too."""

FOR_CARDS = (
    Right(group="", resource="nodes", verbs=("list",)),
    Right(group="", resource="pods", verbs=("list",)),
)
"""In the whole cluster; without them free cards are unknown."""

FOR_HEALTH = (Right(group="", resource="configmaps", verbs=("get",)),)
"""In `kube-system`; without it a plan says that cards which only the device plugin calls sick were not seen."""
