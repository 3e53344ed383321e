"""Blobs and stores that say what they are about to do, so that a test can come in between."""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from toolcrib.ports import Blobs

Step = Callable[[str, str], object]


def nothing(_what: str, _key: str) -> None:
    """No test comes in between."""


class WatchedBlobs:
    """``step`` is told of every operation before it is done. ``age`` changes when a key is said to be written.

    A move is done in two steps, as an object store does it, if ``two_steps``.
    """

    remote = False

    def __init__(
        self,
        inner: Blobs,
        step: Step = nothing,
        *,
        age: Callable[[str, float], float] = lambda _key, at: at,
        two_steps: bool = False,
    ) -> None:
        self.inner = inner
        self.step = step
        self.age = age
        self.two_steps = two_steps

    def put(self, key: str, source: BinaryIO) -> None:
        self.step("put", key)
        self.inner.put(key, source)

    def open(self, key: str) -> Iterator[bytes] | None:
        self.step("open", key)
        return self.inner.open(key)

    def holds(self, key: str) -> bool:
        self.step("holds", key)
        return self.inner.holds(key)

    def copy(self, key: str, to: str) -> bool:
        self.step("copy", key)
        return self.inner.copy(key, to)

    def move(self, key: str, to: str) -> bool:
        if not self.two_steps:
            self.step("move", key)
            return self.inner.move(key, to)
        copied = self.copy(key, to)
        if copied:
            self.delete(key)
        return copied

    def link(self, key: str, *, seconds: int = 3600) -> str | None:
        self.step("link", key)
        return self.inner.link(key, seconds=seconds)

    def delete(self, key: str) -> None:
        self.step("delete", key)
        self.inner.delete(key)

    def keys(self, folder: str = "") -> Iterator[tuple[str, float]]:
        self.step("keys", folder)
        for key, at in self.inner.keys(folder):
            yield key, self.age(key, at)

    def ping(self) -> None:
        self.inner.ping()


class WatchedStore:
    """``step`` is told of every question and every write of a store before it is done."""

    def __init__(self, inner: Any, step: Step) -> None:
        self._inner = inner
        self._step = step

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in {"commit", "query", "history", "get", "count"}:
            return found

        def stepping(*args: Any, **kwargs: Any) -> Any:
            self._step(name, "")
            return found(*args, **kwargs)

        return stepping
