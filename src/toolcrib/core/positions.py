"""Tools are called by name; this calls a function that wants some of its arguments by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class ByPosition:
    """Takes every argument by name, and gives ``own`` its ``leading`` ones, and those of ``rest``, by position.

    ``rest`` is the parameter ``*rest``, empty if there is none. Found by the name of its function, so that another
    process finds it as it finds the function.
    """

    def __init__(self, own: Callable[..., Any], leading: tuple[str, ...], rest: str = "") -> None:
        self.own = own
        self.leading = leading
        self.rest = rest
        self.__module__ = getattr(own, "__module__", "")
        self.__qualname__ = getattr(own, "__qualname__", "<unnamed>")
        self._defaults: dict[str, Any] | None = None

    def __call__(self, /, **keywords: Any) -> Any:
        rest = keywords.pop(self.rest, ()) if self.rest else ()
        positions = []
        for at, name in enumerate(self.leading):
            if name in keywords:
                positions.append(keywords.pop(name))
            elif rest or any(later in keywords for later in self.leading[at + 1 :]):
                positions.append(self._default(name))
            else:
                break  # nothing comes after it: the function fills in its own default
        return self.own(*positions, *rest, **keywords)

    def _default(self, name: str) -> Any:
        if self._defaults is None:
            parameters = inspect.signature(self.own).parameters.values()
            self._defaults = {parameter.name: parameter.default for parameter in parameters}
        return self._defaults[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return ByPosition, (self.own, self.leading, self.rest)


def own_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as its author wrote it."""
    return function.own if isinstance(function, ByPosition) else function
