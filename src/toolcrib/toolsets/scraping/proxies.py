"""``proxy-list``: each request goes out through the next proxy that works."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from toolcrib import UnavailableError
from toolcrib.stacking import Brick, BrickConfig, Request, StepContext
from toolcrib.toolsets.scraping.specs import scraping_spec

_PROXY_FAULTS = ("timeout", "connection_error", "407_error", "502_error", "503_error")


class ProxyListBrick(Brick[Request, Request]):
    """Goes round the list. A proxy that fails ``failures`` times in a row rests for ``rest_seconds``."""

    class Config(BrickConfig):
        proxies: tuple[str, ...] = Field((), description="addresses such as 'http://user:password@host:8080'")
        file: str = Field("", description="a file with one address a line; '#' begins a comment")
        failures: int = Field(3, ge=1, description="so many failures in a row, and a proxy rests")
        rest_seconds: float = Field(60.0, ge=0, description="for so long")

        @model_validator(mode="after")
        def _has_a_source(self) -> ProxyListBrick.Config:
            if not self.proxies and not self.file:
                raise ValueError("give 'proxies' or a 'file' that lists them")
            return self

    spec = scraping_spec("proxy-list")
    files = ("file",)
    example: ClassVar[Mapping[str, Any]] = {"file": "proxies.txt"}
    takes = Request
    gives = Request
    quick = True
    config: Config

    def open(self) -> None:
        listed = [*self.config.proxies, *(_read(self.config.file) if self.config.file else ())]
        self._proxies: list[str] = list(dict.fromkeys(listed))
        if not self._proxies:
            raise UnavailableError(f"the proxy list {self.config.file!r} is empty")
        self._next: int = 0
        self._faults = dict.fromkeys(self._proxies, 0)
        self._rests_until = dict.fromkeys(self._proxies, 0.0)
        self._lock = threading.Lock()

    def process(self, item: Request, _context: StepContext, /) -> Sequence[Request]:
        return [item.through(self._choose())]

    def feedback(self, item: Request, kind: str) -> None:
        with self._lock:
            faults = self._faults[item.proxy] + 1 if kind in _PROXY_FAULTS else 0
            if faults >= self.config.failures:
                self._rests_until[item.proxy] = time.monotonic() + self.config.rest_seconds
                faults = 0
            self._faults[item.proxy] = faults

    def _choose(self) -> str:
        with self._lock:
            now = time.monotonic()
            for _ in self._proxies:
                proxy = self._proxies[self._next]
                self._next = (self._next + 1) % len(self._proxies)
                if self._rests_until[proxy] <= now:
                    return proxy
        raise UnavailableError(f"all {len(self._proxies)} proxies of 'proxy-list' failed and rest for a while")


def _read(path: str) -> list[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UnavailableError(f"the proxy list {path!r} cannot be read: {error.strerror}") from None
    stripped = (line.partition("#")[0].strip() for line in lines)
    return [line for line in stripped if line]
