"""How a command ends: the exit code, and a sentence for the user."""

from __future__ import annotations

from enum import IntEnum

from imageedit_operator.errors import ApiError


# | exit code | name      | when                                                                  |
# | 0         | DONE      | it was done, or everything asked about is ready                       |
# | 1         | FAILED    | refused or failed: by the cluster, by the server, by a check          |
# | 2         | USAGE     | wrong arguments, an unreadable file, no way to log in                 |
# | 3         | NOT_FOUND | the resource, revision or kind does not exist                         |
# | 4         | NOT_READY | the resource is not ready, or its server cannot answer now: try later |
class Exit(IntEnum):
    """Exit codes of every command; docs/kubectl-plugin.md has the same table."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_READY = 4


STRICTLY = "strict decoding error: "
"""Before these words a refusal of a patch quotes all of the object, which may be pages."""


class CommandFailed(Exception):
    """A command ends here; the message is a sentence that says what to do next."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def is_unknown_kind(error: ApiError) -> bool:
    """Whether the cluster has no such kind at all: then it is a bare 404, and no Status that names an object."""
    return error.not_found and error.reason == "Http404"


# | the apiserver's answer           | exit code | the sentence adds                     |
# | none                             | FAILED    | what to check                         |
# | 401, 403                         | FAILED    | whom to ask                           |
# | 404 for the kind                 | NOT_FOUND | that the operator is to be installed  |
# | 404                              | NOT_FOUND |                                       |
# | 409                              | FAILED    | that it changed meanwhile             |
# | unknown fields                   | FAILED    | which, without the object that it has |
# | else                             | FAILED    |                                       |
def from_api(error: ApiError) -> CommandFailed:
    """What the user is told of a refusal of the apiserver."""
    message = error.message.rstrip(".")
    if error.status == 0:
        return CommandFailed(Exit.FAILED, f"The cluster does not answer: {message}. Check the address and the context.")
    if error.status in (401, 403):
        return CommandFailed(Exit.FAILED, f"The cluster refuses it: {message}. Ask its administrator for the right.")
    if is_unknown_kind(error):
        words = "The cluster does not know ImageEditDeployments; install the operator first, or choose another context."
        return CommandFailed(Exit.NOT_FOUND, words)
    if error.not_found:
        return CommandFailed(Exit.NOT_FOUND, f"Not found: {message}.")
    if error.conflict:
        return CommandFailed(Exit.FAILED, "It changed while the command ran, and nothing was written. Try again.")
    return CommandFailed(Exit.FAILED, f"The cluster refuses it: {message.split(STRICTLY)[-1]}.")
