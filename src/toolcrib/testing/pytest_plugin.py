"""The pytest plugin: fixtures, and the examples of tools as tests.

It is imported wherever pytest runs and Toolcrib is installed, so it imports nothing else before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.core.spec import ToolExample, ToolSpec
    from toolcrib.testing.examples import Examined
    from toolcrib.testing.model import ScriptedModel
    from toolcrib.testing.recording import RecordingRegistry


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("toolcrib", "the examples of tools as tests")
    group.addoption(
        "--toolcrib-examples", action="append", default=[], metavar="MODULE[:NAME]",
        help="Run the examples of the tools of a module, a file or a registry in it; may be given several times.",
    )  # fmt: skip
    group.addoption(
        "--toolcrib-allow", action="append", default=[], metavar="TOOL",
        help="Also run a tool that is above its registry's safety level; may be given several times.",
    )  # fmt: skip
    parser.addini("toolcrib_tools", "modules or registries whose tools' examples are tests", type="linelist")
    parser.addini("toolcrib_allow", "tools above their registry's safety level that run as tests", type="linelist")
    parser.addini("toolcrib_tolerance", "by how much a number may be off what an example says", default="0")


@pytest.hookimpl(tryfirst=True)  # before -k, -m and --last-failed choose
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Examples come after the tests. Those of the ini file are left out if the command line names what to run."""
    named: dict[str, Path] = {}
    listed: list[str] = config.getini("toolcrib_tools")
    if listed and config.args_source is not pytest.Config.ArgsSource.ARGS:  # which an old pytest cannot tell
        named |= dict.fromkeys(listed, config.inipath.parent if config.inipath else config.rootpath)
    named |= dict.fromkeys(config.getoption("--toolcrib-examples") or (), config.invocation_params.dir)
    for reference, folder in named.items():
        module = ToolModule.from_parent(session, name=reference, nodeid=reference, folder=folder)
        items.extend(session.genitems(module))


class ToolModule(pytest.Collector):
    """Tools that were named, from where they were named, as a collector of their examples."""

    def __init__(self, *, folder: Path, **more: Any) -> None:
        super().__init__(**more)
        self._folder = folder

    def collect(self) -> Iterator[pytest.Item]:
        from toolcrib.core.comparing import tolerance_of
        from toolcrib.core.errors import ToolcribError
        from toolcrib.testing.examples import Examined, numbered
        from toolcrib.testing.finding import find_registries

        allow = [*(self.config.getoption("--toolcrib-allow") or ()), *self.config.getini("toolcrib_allow")]
        try:
            registries = find_registries(self.name, self._folder)
            tolerance = tolerance_of(self.config.getini("toolcrib_tolerance"))
        except ToolcribError as error:
            raise self.CollectError(str(error)) from None
        for registry in registries:
            examined = Examined(registry, allow)
            for tool in registry:
                for number, example in numbered(tool.spec):
                    name = f"{tool.name}[{number}]"
                    yield Example.from_parent(
                        self,
                        name=name,
                        nodeid=f"{self.nodeid}::{name}",  # read as a cache reads it, for --last-failed
                        examined=examined,
                        spec=tool.spec,
                        example=(number, example),
                        tolerance=tolerance,
                    )


class ExampleFailedError(AssertionError):
    """An example does not give its output any more."""


class Example(pytest.Item):
    """One example of a tool."""

    def __init__(
        self,
        *,
        examined: Examined,
        spec: ToolSpec,
        example: tuple[int, ToolExample],
        tolerance: float,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._tolerance = tolerance
        self._examined = examined
        self._spec = spec
        self._example = example

    def runtest(self) -> None:
        from toolcrib.calling.sync import run_sync
        from toolcrib.testing.examples import Verdict, run_example

        outcome = run_sync(run_example(self._examined.execute, self._spec, *self._example, self._tolerance))
        if outcome.verdict is Verdict.SKIPPED:
            pytest.skip(f"{self.name}: {outcome.reason}")
        if outcome.verdict is Verdict.FAILED:
            raise ExampleFailedError(outcome.reason)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, ExampleFailedError):
            return super().repr_failure(excinfo, style)
        number, example = self._example
        said = f": {example.description}" if example.description else ""
        given = f"{self._spec.name}({', '.join(f'{name}={value!r}' for name, value in example.input.items())})"
        return f"example {number} of {self._spec.name!r}{said}\n  {given}\n{excinfo.value}"

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, self.name


@pytest.fixture
def scripted_model(request: pytest.FixtureRequest) -> Iterator[Callable[..., ScriptedModel]]:
    """Makes a ScriptedModel; a test that ends before a model has said all of its script fails."""
    from toolcrib.testing.model import ScriptedModel

    made: list[ScriptedModel] = []
    failed_before = request.session.testsfailed

    def make(*args: Any, **options: Any) -> ScriptedModel:
        model = ScriptedModel(*args, **options)
        made.append(model)
        return model

    yield make
    has_failed = request.session.testsfailed > failed_before  # then what is left over says nothing new
    for model in made:
        if model.remaining and not has_failed:
            pytest.fail(f"{model!r}: the test ended before the model had said all of it", pytrace=False)


@pytest.fixture
def record_calls() -> Callable[..., RecordingRegistry]:
    """``record_calls(registry, answers={...})`` is a registry with the same tools that keeps every call."""
    from toolcrib.testing.recording import RecordingRegistry

    return RecordingRegistry
