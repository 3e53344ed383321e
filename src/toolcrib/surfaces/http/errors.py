"""What can be wrong with an HTTP request before anything is looked up: a branch of the tree in ``core.errors``."""

from __future__ import annotations

from toolcrib.core.errors import Answer, DeniedError, Exit, ToolcribError


class RequestError(ToolcribError):
    code = "bad_request"
    answer = Answer(400, -32600, Exit.INVALID, "Bad request")


class NoSuchPathError(RequestError):
    code = "no_such_path"
    answer = Answer(404, -32601, Exit.NOT_FOUND, "No such path")


class MethodNotAllowedError(RequestError):
    """``allowed`` lists the methods that the path answers to."""

    code = "method_not_allowed"
    answer = Answer(405, -32601, Exit.USAGE, "Method not allowed")

    def __init__(self, message: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.allowed = allowed


class UnsupportedMediaTypeError(RequestError):
    code = "unsupported_media_type"
    answer = Answer(415, -32600, Exit.USAGE, "Unsupported media type")


class BodyTooLargeError(RequestError):
    code = "body_too_large"
    answer = Answer(413, -32600, Exit.INVALID, "Body too large")


class SlowClientError(RequestError):
    code = "slow_client"
    answer = Answer(408, -32600, Exit.FAILED, "Request timed out")
    retryable = True


class PreconditionFailedError(RequestError):
    code = "precondition_failed"
    answer = Answer(412, -32009, Exit.REFUSED, "Changed since it was read")
    retryable = True


class ForeignHostError(RequestError):
    """The request names a host that is not ours: a web page that resolved its own name to this machine."""

    code = "foreign_host"
    answer = Answer(421, -32600, Exit.REFUSED, "Not a host of this service")


class ForeignOriginError(DeniedError):
    """The request was made by a web page of another origin."""

    code = "foreign_origin"
    answer = Answer(403, -32003, Exit.REFUSED, "Not an origin of this service")
