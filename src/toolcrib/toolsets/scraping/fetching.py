"""What the bricks that fetch have in common: their settings, and failures told in the pipeline's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pydantic import Field

from toolcrib import ToolFailedError, ToolTimeoutError, UnavailableError
from toolcrib.stacking import BrickConfig, Page, Request

USER_AGENT = "Mozilla/5.0 (compatible; Toolcrib)"


class FetchConfig(BrickConfig):
    timeout: float = Field(30.0, gt=0, le=600, description="seconds for a whole answer")
    headers: dict[str, str] = Field(default_factory=dict, description="sent with every request")
    user_agent: str = USER_AGENT
    max_bytes: int = Field(20_000_000, gt=0, description="a larger answer is a failure")
    verify: bool = Field(True, description="check certificates")

    def headers_for(self, request: Request) -> dict[str, str]:
        return {"User-Agent": self.user_agent, **self.headers, **request.headers}


def page(tool: str, request: Request, url: str, status: int, headers: Mapping[str, str], body: bytes) -> Page:
    return Page(request, url, status, body, {name.lower(): value for name, value in headers.items()}, tool)


def check_size(tool: str, config: FetchConfig, size: int, url: str) -> None:
    if size > config.max_bytes:
        raise ToolFailedError(tool, f"{url} is larger than the {config.max_bytes} bytes of 'max_bytes'")


@contextmanager
def told_plainly(
    tool: str, request: Request, seconds: float, timeouts: type[Exception], errors: type[Exception]
) -> Iterator[None]:
    """A library's own exceptions become ToolTimeoutError and UnavailableError."""
    try:
        yield
    except (timeouts, TimeoutError):
        raise ToolTimeoutError(tool, seconds) from None
    except errors as error:
        raise UnavailableError(
            f"{request.url} did not answer {tool!r}: {str(error) or type(error).__name__}"
        ) from error
