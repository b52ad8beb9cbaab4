"""The kinds of objects that the operator reads or writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """One kind of objects as the apiserver serves it."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def root(self) -> str:
        """Path of the API group version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


IMAGE_EDIT_DEPLOYMENTS = Resource(group="imageedit.dev", version="v1alpha1", plural="imageeditdeployments")
DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments")
PODS = Resource(group="", version="v1", plural="pods")
JOBS = Resource(group="batch", version="v1", plural="jobs")
SERVICES = Resource(group="", version="v1", plural="services")
CLAIMS = Resource(group="", version="v1", plural="persistentvolumeclaims")
CLAIM_TEMPLATES = Resource(group="resource.k8s.io", version="v1", plural="resourceclaimtemplates")
BUDGETS = Resource(group="policy", version="v1", plural="poddisruptionbudgets")
CONFIG_MAPS = Resource(group="", version="v1", plural="configmaps")
NODES = Resource(group="", version="v1", plural="nodes", namespaced=False)
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases")
EVENTS = Resource(group="events.k8s.io", version="v1", plural="events")
ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io", version="v1", plural="selfsubjectaccessreviews", namespaced=False
)
