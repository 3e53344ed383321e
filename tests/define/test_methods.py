"""@tool on methods: bound to their instance, registered together, refused without an instance."""

import abc
import functools
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Self

import cloudpickle
import pytest

from toolcrib import (
    BaseTool,
    Tool,
    ToolContext,
    ToolExistsError,
    ToolNotFoundError,
    ToolRegistry,
    ToolValidationError,
    tool,
)
from toolcrib.core.spec import Isolation
from toolcrib.define import as_tool, make_tool
from toolcrib.define.methods import MethodTool

_LOCK = threading.Lock()
"""Cannot be pickled: a method that uses it must travel by its name."""


@tool
def helper(a: int) -> int:
    """Help."""
    return a


class Files:
    """Files below a folder."""

    helper = helper  # a tool of the module, not one of this class

    def __init__(self, root: str) -> None:
        self.root = root

    @tool
    def read(self, path: str, times: int = 1) -> str:
        """Read a file."""
        with _LOCK:
            return f"{self.root}/{path}" * times

    @tool(name="write-file", tags=["files"])
    async def write(self, context: ToolContext, *paths: str) -> str:
        """Write files."""
        return f"{self.root} {context.principal} {','.join(paths)}"

    @tool
    async def lines(self: Self, path: str) -> AsyncIterator[str]:
        """Lines of a file."""
        yield path

    @staticmethod
    @tool
    def inner_static(a: int) -> int:
        """Static."""
        return a + 1

    @tool
    @staticmethod
    def outer_static(a: int) -> int:
        """Static."""
        return a + 2

    @classmethod
    @tool
    def inner_class(cls, a: int) -> str:
        """Class."""
        return f"{cls.__name__} {a}"

    @tool
    @classmethod
    def outer_class(cls, a: int) -> str:
        """Class."""
        return f"{cls.__name__} {a}"

    def plain(self, path: str) -> str:
        """Plain."""
        return f"{self.root}:{path}"


class MoreFiles(Files):
    @tool
    def read(self, path: str, times: int = 1) -> str:
        """Read a file otherwise."""
        return f"more {super().read(path, times)}"

    @tool
    def delete(this, path: str) -> str:
        """Delete a file."""
        return f"{this.root} -{path}"


ALL = ["read", "write-file", "lines", "inner_static", "outer_static", "inner_class", "outer_class"]


async def test_a_method_is_a_tool_of_its_instance() -> None:
    files, others = Files("/x"), Files("/y")
    assert list(files.read.spec.parameters["properties"]) == ["path", "times"]
    assert files.read.spec.description == "Read a file."
    assert files.read("a") == "/x/a"
    assert Files.read(files, "a") == "/x/a", "as it is of a method"
    registry = ToolRegistry([files.read, files.write])
    assert (await registry.execute("read", {"path": "b", "times": 2})).data == "/x/b/x/b"
    written = await registry.execute("write-file", {"paths": ["a", "b"]}, context=ToolContext("ada"))
    assert written.data == "/x ada a,b"
    assert registry.register(make_tool(others.read, name="read-y"))("a") == "/y/a"
    assert (await registry.execute("read-y", {"path": "c"})).data == "/y/c"
    assert files.lines.spec.returns == {"type": "array", "items": {"type": "string"}}


async def test_an_object_registers_all_its_tool_methods() -> None:
    registry = ToolRegistry()
    registered = registry.register(Files("/x"))
    assert [each.name for each in registered] == ALL == list(registry.names())
    for name, data in [
        ("inner_static", 2),
        ("outer_static", 3),
        ("inner_class", "Files 1"),
        ("outer_class", "Files 1"),
    ]:
        result = await registry.execute(name, {"a": 1})
        assert (result.error, result.data) == (None, data)


async def test_inherited_methods_come_along_and_overridden_ones_once() -> None:
    registry = ToolRegistry([MoreFiles("/x"), helper])
    assert list(registry.names()) == [*ALL, "delete", "helper"]
    assert (await registry.execute("read", {"path": "a"})).data == "more /x/a"
    assert (await registry.execute("delete", {"path": "a"})).data == "/x -a"
    assert (await registry.execute("inner_class", {"a": 1})).data == "MoreFiles 1"


def test_another_name_of_a_method_is_no_other_tool() -> None:
    class Named:
        @tool
        def find(self) -> str:
            """Find."""
            return "found"

        search = find

    [found] = ToolRegistry().register(Named())
    assert found.name == "find" and Named().search() == "found"


def test_an_override_without_tool_is_no_tool() -> None:
    class Silent(Files):
        def read(self, path: str, times: int = 1) -> str:  # type: ignore[override]
            return ""

    assert "read" not in [each.name for each in ToolRegistry().register(Silent("/"))]


async def test_two_objects_of_a_class_need_other_names() -> None:
    one, other = Files("/x"), Files("/y")
    registry = ToolRegistry([one])
    with pytest.raises(
        ToolExistsError, match=r"'read' exists already; give one another name, as tool\(name='\.\.\.'\)"
    ):
        registry.register(other)
    with pytest.raises(ToolExistsError, match=r"it is in the list twice; give one another name, as tool\(name="):
        ToolRegistry([one, other])
    registry.register(tool(name="read-y")(other.read))
    assert (await registry.execute("read-y", {"path": "a"})).data == "/y/a"


def test_all_of_an_object_or_nothing() -> None:
    registry = ToolRegistry([make_tool(helper, name="outer_static")])
    with pytest.raises(ToolExistsError):
        registry.register(Files("/x"))
    with pytest.raises(ToolExistsError):
        registry.register_many([helper, Files("/x")])
    assert list(registry.names()) == ["outer_static"]
    with pytest.raises(ToolNotFoundError):
        registry.get("read")


def test_a_class_that_needs_nothing_is_made() -> None:
    class Clock:
        @tool
        def now(self) -> str:
            """Now."""
            return "now"

    assert [each.name for each in ToolRegistry().register(Clock)] == ["now"]


async def test_what_waits_for_an_instance_is_refused() -> None:
    registry = ToolRegistry()
    says = r"tool 'read' is a method and belongs to an instance: use Files\(\.\.\.\)\.read, not Files\.read"
    with pytest.raises(ToolValidationError, match=says):
        registry.register(Files.read)
    with pytest.raises(ToolValidationError, match=says):
        ToolRegistry([tool(name="read")(Files.read)])
    with pytest.raises(ToolValidationError, match=says):
        await Files.read.execute({"path": "a"})
    with pytest.raises(ToolValidationError, match=r"tool 'write-file' is a method .* use Files\(\.\.\.\)\.write, not"):
        registry.register(Files.write)
    with pytest.raises(ToolValidationError, match=r"'plain' is a method and belongs to an instance"):
        registry.register(Files.plain)
    with pytest.raises(ToolValidationError, match=r"'Files' cannot be made into a tool: .*root.*; use an instance"):
        registry.register(Files)
    with pytest.raises(ToolValidationError, match=r"is not one tool, it has 'read', 'write-file'"):
        as_tool(Files("/x"))
    assert len(registry) == 0


async def test_class_and_static_methods_without_an_instance() -> None:
    registry = ToolRegistry([Files.inner_static, Files.outer_static, Files.inner_class, Files.outer_class])
    assert (await registry.execute("outer_class", {"a": 1})).data == "Files 1"
    assert (await registry.execute("inner_class", {"a": 1})).data == "Files 1"
    untyped: Any = Files  # mypy binds what stands above @staticmethod and @classmethod as if they were not there
    assert untyped.outer_class(1) == untyped("/").outer_class(1) == untyped.inner_class(1) == "Files 1"
    assert untyped.outer_static(1) == untyped("/").outer_static(1) == 3


async def test_bound_methods_without_tool() -> None:
    registry = ToolRegistry()
    made = registry.register(Files("/x").plain)
    assert made.spec.parameters["required"] == ["path"]
    assert (await registry.execute("plain", {"path": "a"})).data == "/x:a"


def test_a_tool_class_is_one_tool_whatever_its_methods_are() -> None:
    class Search(BaseTool):
        """Search."""

        @tool
        def other(self) -> None:
            """Other."""

        def execute(self, words: str) -> str:
            return words

    assert ToolRegistry().register(Search).name == "search"


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
async def test_bound_tools_run_in_every_isolation(isolation: Isolation) -> None:
    files = MoreFiles("/x")
    registry = ToolRegistry()
    for name in ("delete", "write", "plain", "inner_static", "outer_static", "inner_class", "outer_class"):
        function = as_tool(getattr(files, name)).function
        registry.register(make_tool(function, name=name, isolation=isolation))
    registry.register(make_tool(Files("/y").read.function, isolation=isolation))
    given: list[tuple[str, dict[str, Any], Any]] = [
        ("read", {"path": "a"}, "/y/a"),
        ("delete", {"path": "a"}, "/x -a"),
        ("plain", {"path": "a"}, "/x:a"),
        ("inner_static", {"a": 1}, 2),
        ("outer_static", {"a": 1}, 3),
        ("inner_class", {"a": 1}, "MoreFiles 1"),
        ("outer_class", {"a": 1}, "MoreFiles 1"),
    ]
    for name, arguments, expected in given:
        result = await registry.execute(name, arguments)
        assert (result.error, result.data) == (None, expected)


class Remote:
    def __init__(self, factor: int, *, lock: bool = False) -> None:
        self.factor = factor
        self.lock = threading.Lock() if lock else None

    @tool(isolation="process")
    def times(self, number: int, /, *more: int) -> list[int]:
        """Multiply."""
        with _LOCK:
            return [each * self.factor for each in (number, *more)]


async def test_an_instance_travels_with_its_tool_to_another_process() -> None:
    assert (await ToolRegistry([Remote(3)]).execute("times", {"number": 1, "more": [2]})).data == [3, 6]
    failed = await ToolRegistry([Remote(3, lock=True)]).execute("times", {"number": 1})
    assert failed.error_code == "invalid_arguments"
    assert failed.error is not None and "cannot be sent to another process" in failed.error


async def test_tools_of_methods_can_be_sent_elsewhere() -> None:
    sent = cloudpickle.loads(cloudpickle.dumps(MoreFiles("/x").delete))
    assert isinstance(sent, Tool) and sent("a") == "/x -a"
    waiting = cloudpickle.loads(cloudpickle.dumps(MoreFiles.delete))
    assert isinstance(waiting, MethodTool)
    assert await waiting.bound_to(Files("/z")).execute({"path": "a"}) == "/z -a"


class Spot:
    def __init__(self, x: int) -> None:
        self.x = x

    @tool
    def moved(self, by: int) -> "Spot":
        """Move."""
        return Spot(self.x + by)


async def test_a_method_may_return_its_own_class() -> None:
    assert Spot.moved.spec.returns == {}
    assert (await Spot(1).moved.execute({"by": 2})).x == 3
    with pytest.raises(
        ToolValidationError, match=r"'other' .*: class 'Joined' does not exist yet .* an instance, Joined\("
    ):

        class Joined:
            @tool
            def join(self, other: "list[Joined]") -> None:
                """Join."""


async def test_a_bound_method_may_take_its_own_class() -> None:
    @dataclass
    class Sum:
        x: int

        def plus(self, other: "Sum") -> int:
            """Add."""
            return self.x + other.x

    assert (await ToolRegistry([Sum(1).plus]).execute("plus", {"other": {"x": 2}})).data == 3


class Reader(abc.ABC):
    @tool
    @abc.abstractmethod
    def below(self, path: str) -> str:
        """Read."""

    @abc.abstractmethod
    @tool
    def above(self, path: str) -> str:
        """Read."""


def test_abstract_methods_wait_for_a_subclass() -> None:
    class Half(Reader):
        @tool
        def below(self, path: str) -> str:
            """Read half."""
            return path

    class Whole(Half):
        @tool
        def above(self, path: str) -> str:
            """Read all."""
            return path

    assert [each.description for each in ToolRegistry().register(Whole())] == ["Read half.", "Read all."]
    for kind in (Reader, Half):
        with pytest.raises(ToolValidationError, match=rf"'{kind.__name__}' cannot be made into a tool: .*abstract"):
            ToolRegistry().register(kind)


def logged(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


async def test_a_decorator_stands_below_tool() -> None:
    class Good:
        @tool
        @logged
        def read(self, path: str) -> str:
            """Read."""
            return path

    class Bad:
        @tool
        def write(self, path: str) -> str:
            """Write."""
            return path

        @logged
        @tool
        def read(self, path: str) -> str:
            """Read."""
            return path

    assert (await ToolRegistry([Good()]).execute("read", {"path": "a"})).data == "a"
    with pytest.raises(ToolValidationError, match="a decorator stands above @tool of 'read'"):
        ToolRegistry([Bad()])


@pytest.mark.parametrize(
    "above",
    [
        property,
        functools.cached_property,
        functools.cache,
        functools.partialmethod,
        functools.singledispatchmethod,
        lambda made: staticmethod(logged(made)),
    ],
)
def test_nothing_above_tool_hides_it(above: Any) -> None:
    class Shown:
        @tool
        def one(self) -> int:
            """One."""
            return 1

        @above
        @tool
        def other(self, number: int = 1) -> int:
            """Another."""
            return number

    for refused in (lambda: ToolRegistry([Shown()]), lambda: tool(name="other")(vars(Shown)["other"])):
        with pytest.raises(ToolValidationError, match="a decorator stands above @tool of 'other'"):
            refused()


def test_a_static_method_that_cannot_be_known_is_refused_with_its_object() -> None:
    class Odd:
        @staticmethod
        @tool
        def twice(value, times: int = 2) -> Any:
            """Twice."""
            return value * times

    with pytest.raises(ToolValidationError, match="'twice' is a method .* put @tool above @staticmethod"):
        ToolRegistry([Odd()])


def test_an_object_that_has_every_attribute_is_what_its_class_says() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: name

    class Known(Proxy):
        @tool
        def find(self) -> str:
            """Find."""
            return "found"

    assert list(ToolRegistry([Known()]).names()) == ["find"]
    with pytest.raises(ToolValidationError, match="is not a tool"):
        ToolRegistry().register(Proxy())
