"""``BaseTool``: a class becomes a tool."""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define.callables import without_tools
from toolcrib.define.function import assemble

_log = logging.getLogger("toolcrib")


class Executable(ABC):  # noqa: B024 - `execute` is abstract, where a type checker does not look
    """Subclasses choose the parameters of ``execute``, so its signature is not part of the contract."""

    if TYPE_CHECKING:
        execute: Callable[..., Any]
    else:

        @abstractmethod
        def execute(self, **arguments: Any) -> Any:
            """Run the tool: sync or async."""
            raise NotImplementedError("Subclasses must implement execute()")


class BaseTool(Executable):
    """Describe the tool with class attributes named as ToolSpec's fields, and write ``execute``.

        class Greet(BaseTool):
            name = "greet"
            description = "Greet somebody."
            tags = ("demo",)

            async def execute(self, who: str, polite: bool = True) -> str:
                return f"Good day, {who}." if polite else f"Hi {who}!"

    ``name`` and ``description`` default to the class's name and docstring, the schemas to ``execute``'s signature. A
    whole ToolSpec as the attribute ``spec`` will do as well. What the tool needs at run time goes into ``__init__``.
    """

    spec: ClassVar[ToolSpec | None] = None

    def __toolcrib_tool__(self) -> Tool:
        return assemble(without_tools(self.execute), self._fields())

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        doc = _own_doc(cls)
        known = {"description": doc} if doc else {}
        if cls.spec is not None:
            return known | {name: getattr(cls.spec, name) for name in cls.spec.model_fields_set}
        _warn_of_misspelt(cls)
        given = {name: getattr(cls, name) for name in ToolSpec.model_fields if hasattr(cls, name)}
        return {"name": _snake_case(cls.__name__)} | known | given


def _own_doc(cls: type) -> str:
    """The class's docstring, not one inherited from BaseTool."""
    return " ".join((cls.__dict__.get("__doc__") or "").split())


def _warn_of_misspelt(cls: type) -> None:
    """A class may have any attributes, so what is nearly a field is not refused; but a tool without it is another."""
    for name, value in vars(cls).items():
        if callable(value) or name in ToolSpec.model_fields:
            continue
        if near := get_close_matches(name, ToolSpec.model_fields, 1, 0.9):
            _log.warning(
                "attribute %r of class %r is no field of a tool; did you mean %r?", name, cls.__name__, near[0]
            )


def _snake_case(name: str) -> str:
    return _NEXT_WORD.sub("_", name).lower()


_NEXT_WORD = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
