"""One table: what an error means at each door.

A door looks an error up by its class, or by the nearest class above it in the tree of :mod:`toolcrib.core.errors`.

Exit status: 0 yes or done, 1 a negative answer, 2 wrong usage, 3 not found, 4 invalid input, 5 refused,
6 the store (or what it stands on) failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolcrib.core import errors

EXIT_DONE: Final = 0
EXIT_NO: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_FOUND: Final = 3
EXIT_INVALID: Final = 4
EXIT_REFUSED: Final = 5
EXIT_FAILED: Final = 6

_INVALID_REQUEST: Final = -32600
_METHOD_NOT_FOUND: Final = -32601
_INVALID_PARAMS: Final = -32602
_INTERNAL: Final = -32603


@dataclass(frozen=True, slots=True)
class Answer:
    """How each door tells of one kind of error; ``title`` is the same for every error of the kind."""

    http: int
    rpc: int
    exit: int
    title: str


class RequestError(errors.ToolcribError):
    """A request that is wrong before anything is looked up: the doors' own branch of the tree."""

    code = "bad_request"


class NoSuchPathError(RequestError):
    code = "no_such_path"


class MethodNotAllowedError(RequestError):
    """``allowed`` lists the methods that the path answers to."""

    code = "method_not_allowed"

    def __init__(self, message: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.allowed = allowed


class NotAcceptableError(RequestError):
    code = "not_acceptable"


class UnsupportedMediaTypeError(RequestError):
    code = "unsupported_media_type"


class BodyTooLargeError(RequestError):
    code = "body_too_large"


class SlowClientError(RequestError):
    code = "slow_client"
    retryable = True


class RateLimitedError(RequestError):
    """``seconds`` is how long to wait."""

    code = "rate_limited"
    retryable = True

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class PreconditionFailedError(RequestError):
    code = "precondition_failed"
    retryable = True


class ForeignHostError(RequestError):
    """The request names a host that is not ours: a web page that resolved its own name to this machine."""

    code = "foreign_host"


class ForeignOriginError(errors.DeniedError):
    """The request was made by a web page of another origin."""

    code = "foreign_origin"


ANSWERS: Final[dict[type[Exception], Answer]] = {
    errors.ToolcribError: Answer(500, _INTERNAL, EXIT_FAILED, "Internal error"),
    errors.ToolNotFoundError: Answer(404, _INVALID_PARAMS, EXIT_NOT_FOUND, "Tool not found"),
    errors.ToolExistsError: Answer(409, -32009, EXIT_INVALID, "Tool exists already"),
    errors.ToolValidationError: Answer(400, _INVALID_PARAMS, EXIT_INVALID, "Invalid tool"),
    errors.InvalidNameError: Answer(400, _INVALID_PARAMS, EXIT_INVALID, "Invalid tool name"),
    errors.InvalidSchemaError: Answer(400, _INVALID_PARAMS, EXIT_INVALID, "Invalid JSON Schema"),
    errors.BreakingChangeError: Answer(409, -32009, EXIT_INVALID, "Breaking change"),
    errors.ExportError: Answer(400, _INVALID_PARAMS, EXIT_INVALID, "Not exportable to this format"),
    errors.InvalidArgumentsError: Answer(400, _INVALID_PARAMS, EXIT_INVALID, "Invalid arguments"),
    errors.InvalidQueryError: Answer(400, _INVALID_PARAMS, EXIT_INVALID, "Invalid query"),
    errors.InvalidBundleError: Answer(400, _INVALID_PARAMS, EXIT_INVALID, "Invalid bundle"),
    errors.SettingsError: Answer(500, _INTERNAL, EXIT_INVALID, "Invalid setting"),
    errors.DeniedError: Answer(403, -32003, EXIT_REFUSED, "Refused"),
    errors.ApprovalRequiredError: Answer(403, -32003, EXIT_REFUSED, "Approval required"),
    errors.UnauthenticatedError: Answer(401, -32001, EXIT_REFUSED, "Not authenticated"),
    errors.ToolTimeoutError: Answer(504, -32008, EXIT_FAILED, "Tool passed its deadline"),
    errors.ToolFailedError: Answer(502, -32010, EXIT_FAILED, "Tool failed"),
    errors.InvalidOutputError: Answer(502, -32010, EXIT_FAILED, "Tool returned invalid output"),
    errors.ToolBusyError: Answer(503, -32011, EXIT_FAILED, "Tool is busy"),
    errors.IncompatibleError: Answer(409, -32009, EXIT_NO, "Tools do not fit together"),
    errors.ConflictError: Answer(409, -32009, EXIT_REFUSED, "Changed by somebody else"),
    errors.ToolInUseError: Answer(409, -32009, EXIT_REFUSED, "Tool is in use"),
    errors.MissingDependencyError: Answer(501, _INTERNAL, EXIT_FAILED, "Optional package not installed"),
    errors.MissingConfigError: Answer(409, -32009, EXIT_INVALID, "Required configuration missing"),
    errors.UnavailableError: Answer(503, -32011, EXIT_FAILED, "Service unavailable"),
    errors.StoreError: Answer(503, -32011, EXIT_FAILED, "Store unavailable"),
    errors.PolicyUnavailableError: Answer(503, -32011, EXIT_REFUSED, "Policy service unavailable"),
    RequestError: Answer(400, _INVALID_REQUEST, EXIT_INVALID, "Bad request"),
    NoSuchPathError: Answer(404, _METHOD_NOT_FOUND, EXIT_NOT_FOUND, "No such path"),
    MethodNotAllowedError: Answer(405, _METHOD_NOT_FOUND, EXIT_USAGE, "Method not allowed"),
    NotAcceptableError: Answer(406, _INVALID_REQUEST, EXIT_USAGE, "Not acceptable"),
    UnsupportedMediaTypeError: Answer(415, _INVALID_REQUEST, EXIT_USAGE, "Unsupported media type"),
    BodyTooLargeError: Answer(413, _INVALID_REQUEST, EXIT_INVALID, "Body too large"),
    SlowClientError: Answer(408, _INVALID_REQUEST, EXIT_FAILED, "Request timed out"),
    RateLimitedError: Answer(429, -32029, EXIT_REFUSED, "Too many requests"),
    PreconditionFailedError: Answer(412, -32009, EXIT_REFUSED, "Changed since it was read"),
    ForeignHostError: Answer(421, _INVALID_REQUEST, EXIT_REFUSED, "Not a host of this service"),
    ForeignOriginError: Answer(403, -32003, EXIT_REFUSED, "Not an origin of this service"),
}

UNEXPECTED: Final = Answer(500, _INTERNAL, EXIT_FAILED, "Internal error")
"""For an exception that is not of the tree: a defect, whose text stays in the log."""


def answer_for(error: BaseException | type[BaseException]) -> Answer:
    """The table's row for an error or an error class."""
    kind = error if isinstance(error, type) else type(error)
    for ancestor in kind.__mro__:
        answer = ANSWERS.get(ancestor)
        if answer is not None:
            return answer
    return UNEXPECTED


def exit_status(error: BaseException) -> int:
    """What a command ends with where it raised ``error``."""
    return answer_for(error).exit
