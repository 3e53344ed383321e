"""Tool: a spec plus the code that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Protocol, Self, cast, overload

from typing_extensions import ParamSpec, TypeVar

from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolcribError
from toolcrib.core.json import as_json
from toolcrib.core.positions import own_function
from toolcrib.core.result import Ran, ToolResult
from toolcrib.core.schema import ArgumentCheck, OutputCheck
from toolcrib.core.spec import ToolSpec

P = ParamSpec("P", default=...)
R_co = TypeVar("R_co", default=Any, covariant=True)
_Rest = ParamSpec("_Rest")

_JSON_SCALARS = frozenset({str, int, bool, type(None)})
"""Not float, of which some are no JSON."""


class Runner(Protocol):
    """Runs a tool's function with checked arguments, and ends it at the tool's deadline.

    Raises ToolTimeoutError past the deadline and ToolFailedError if the function raised. What it returns may be a
    ``Ran``: the value, with facts about the run.
    """

    def __call__(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Awaitable[Any]: ...


class Tool(Generic[P, R_co]):
    """``tool.spec`` says what it is, ``await tool.execute(arguments)`` runs it.

    Calling the object itself (``tool(...)``) is calling the function it was made from, unchecked. For a type checker
    ``Tool[P, R]`` has that function's signature; plain ``Tool`` is a tool of any.
    """

    __slots__ = (
        "__weakref__", "_check", "_checks_output", "_output",
        "context_parameter", "decode", "function", "runner", "spec",
    )  # fmt: skip

    def __init__(
        self,
        spec: ToolSpec,
        function: Callable[..., Any],
        runner: Runner,
        *,
        context_parameter: str | None = None,
        decode: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.spec = spec
        self.function = function
        self.context_parameter = context_parameter
        self.decode = decode
        self.runner = runner
        self._check: ArgumentCheck | None = None
        self._output: OutputCheck | None = None
        self._checks_output = bool(spec.returns)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def description(self) -> str:
        return self.spec.description

    async def execute(self, arguments: Mapping[str, Any] | None = None, *, context: ToolContext = NO_CONTEXT) -> Any:
        """Validate, run with the deadline, check the output. Raises what went wrong."""
        value = await self.runner(self, self.validate(arguments), context)
        if type(value) is Ran:
            value = value.value
        self.check_output(value)
        return value

    def validate(self, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments as JSON values with defaults applied, or InvalidArgumentsError."""
        check = self._check or self._compiled_check()
        try:
            return check(arguments)
        except InvalidArgumentsError as error:
            if error.wrong and self.decode is not None:
                raise self._with_wrong_types(error, dict(arguments or {})) from None
            raise

    def _compiled_check(self) -> ArgumentCheck:
        # What makes values of some arguments, with the defaults inside of them, says so.
        typed = getattr(self.decode, "typed", ())
        self._check = ArgumentCheck(self.spec.parameters, self.spec.name, typed)
        return self._check

    def _with_wrong_types(self, error: InvalidArgumentsError, given: dict[str, Any]) -> InvalidArgumentsError:
        """All in one answer: the function's types may forbid what the schema takes, such as a day that is none."""
        assert self.decode is not None
        known = {path.partition(".")[0] for path in error.wrong} | error.wrong.keys()
        rest = {name: value for name, value in given.items() if name not in known}
        try:
            self.decode(rest)
        except InvalidArgumentsError as typed:
            more = {path: said for path, said in typed.wrong.items() if path.partition(".")[0] in rest}
            return InvalidArgumentsError.of({**error.wrong, **more}, tool=self.name)
        except ToolcribError:
            pass  # it is the call that is wrong; what else is, comes with a right one
        return error

    def check_output(self, value: Any) -> None:
        """Raises InvalidOutputError if the output schema forbids what the tool returned."""
        if not self._checks_output:
            return
        if isinstance(value, ToolResult):
            if not value.success:
                return
            value = value.data
        if self._output is None:
            self._output = OutputCheck(self.spec.returns, self.spec.name)
        self._output(value if type(value) in _JSON_SCALARS else as_json(value))

    def keywords(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """What the function is called with: typed values, and the context if it asks for one."""
        decode = self.decode
        if decode is not None:
            arguments = decode(arguments)
        if self.context_parameter is not None:
            arguments = {**arguments, self.context_parameter: context.handed_to(self.spec.name)}
        return arguments

    def with_spec(self, spec: ToolSpec) -> Tool:
        """The same code under another description."""
        return Tool(spec, self.function, self.runner, context_parameter=self.context_parameter, decode=self.decode)

    def with_function(self, function: Callable[..., Any], runner: Runner) -> Tool:
        """Other code under the same description. What its checks have compiled is shared, not made again."""
        made = Tool(self.spec, function, runner, context_parameter=self.context_parameter, decode=self.decode)
        if self._output is None and self._checks_output:
            self._output = OutputCheck(self.spec.returns, self.spec.name)
        made._check, made._output = self._check or self._compiled_check(), self._output
        return made

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return cast(R_co, own_function(self.function)(*args, **kwargs))

    if TYPE_CHECKING:  # at run time a tool made of a method binds (toolcrib.define.methods), any other is a plain value

        @overload
        def __get__(self, instance: None, owner: type | None = None, /) -> Self: ...

        @overload
        def __get__(
            self: Tool[Concatenate[Any, _Rest], R_co], instance: object, owner: type | None = None, /
        ) -> Tool[_Rest, R_co]: ...

        def __get__(self, instance: object, owner: type | None = None, /) -> Tool[..., Any]: ...

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild: partial[Tool] = partial(Tool, context_parameter=self.context_parameter, decode=self.decode)
        return rebuild, (self.spec, self.function, self.runner)

    @property
    def __isabstractmethod__(self) -> bool:
        """Whether it is to be written in a subclass; ``@abstractmethod`` may stand above ``@tool`` or below."""
        return getattr(own_function(self.function), "__isabstractmethod__", False)

    @__isabstractmethod__.setter
    def __isabstractmethod__(self, is_abstract: bool) -> None:
        own_function(self.function).__isabstractmethod__ = is_abstract  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<Tool {self.spec.name!r}>"
