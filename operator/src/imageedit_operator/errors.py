"""The few errors of the operator's shell; each message says what to do next."""

from __future__ import annotations

from collections.abc import Mapping


class SettingsInvalid(Exception):
    """A flag or an environment variable is out of range."""


class PreflightFailed(Exception):
    """The cluster lacks something without which the operator cannot work at all."""


class ApiError(Exception):
    """The apiserver refused a request, or did not answer it.

    `status` is the HTTP status, 0 when there was no answer. `reason` is the apiserver's own
    CamelCase reason (`Conflict`, `Forbidden`, ...), or `Unreachable`; `late` when the time for an answer ran out.
    `fields` are those that a 422 complains of,
    `contested` those that an apply without force must leave to other managers, with their names.
    """

    def __init__(
        self,
        *,
        status: int,
        reason: str,
        message: str,
        retry_after_s: float = 0.0,
        late: bool = False,
        fields: frozenset[str] = frozenset(),
        contested: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{reason} ({status}): {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.late = late
        self.fields = fields
        self.contested = dict(contested or {})

    @property
    def not_found(self) -> bool:
        """The object does not exist."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """A precondition failed, or the object exists already.

        A patch with the uid of an object that is gone by now is a 422: "metadata.uid: field is immutable".
        """
        return self.status == 409 or (self.status == 422 and "metadata.uid" in self.fields)

    @property
    def forbidden(self) -> bool:
        """RBAC, or an admission plugin such as a quota, says no."""
        return self.status == 403


class WorldMoved(Exception):
    """An action met an object that is not what the plan saw; look again and plan anew."""


class Deposed(Exception):
    """The Lease is lost: this operator must not act until it has it again."""
