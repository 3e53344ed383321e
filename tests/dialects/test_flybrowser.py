import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dialects.flybrowser_samples import ClickTool, ScreenshotTool

import toolcrib
from toolcrib.calling import run_async_inline
from toolcrib.dialects.flybrowser import (
    ALIASES,
    BaseTool,
    ModelCapability,
    SafetyLevel,
    ToolCategory,
    ToolMetadata,
    ToolParameter,
    ToolRegistry,
    ToolResult,
)
from toolcrib.toolsets.browser import browser_specs


class MyCustomTool(BaseTool):
    metadata = ToolMetadata(
        name="my_custom_tool",
        description="Does something custom",
        optimal_capabilities=[ModelCapability.EXTENDED_THINKING],
    )

    async def execute(self, **kwargs: Any) -> ToolResult:
        return ToolResult.success_result(kwargs, source="custom")


class Element:
    def __init__(self) -> None:
        self.clicks = 0

    async def click(self) -> None:
        self.clicks += 1


class PageController:
    """A page of one button."""

    def __init__(self) -> None:
        self.button = Element()
        self.waited: list[float] = []

    async def wait_for_selector(self, selector: str, timeout: float) -> Element:
        self.waited.append(timeout)
        if selector != "#submit-btn":
            raise LookupError("no such element")
        return self.button


@pytest.fixture
def page() -> PageController:
    return PageController()


@pytest.fixture
def registry(page: PageController) -> ToolRegistry:
    registry = ToolRegistry(page)
    for tool in (ClickTool, ScreenshotTool, MyCustomTool):
        registry.register(tool)
    return registry


def test_the_json_schema_to_the_letter() -> None:
    tool = ClickTool()
    assert tool.metadata.to_json_schema() == {
        "type": "object",
        "properties": {
            "selector": {"type": "string", "description": "CSS selector for the element to click"},
            "timeout": {"type": "number", "description": "Timeout in milliseconds", "default": 5000},
        },
        "required": ["selector"],
    }


def test_enums_and_items_in_the_schema() -> None:
    parameter = ToolParameter(name="n", type="array", enum=[["a"]], items_type="string")
    assert parameter.to_json_schema() == {"type": "array", "enum": [["a"]], "items": {"type": "string"}}


def test_the_words() -> None:
    assert [category.value for category in ToolCategory] == [
        "navigation",
        "interaction",
        "extraction",
        "form",
        "system",
        "utility",
    ]
    assert [level.value for level in SafetyLevel] == ["safe", "low_risk", "medium", "high", "dangerous"]
    assert SafetyLevel.MEDIUM_RISK < SafetyLevel.HIGH_RISK < SafetyLevel.DANGEROUS
    assert ToolResult.success_result(1, a=2) == ToolResult(success=True, data=1, metadata={"a": 2})
    assert ToolResult.failure_result("no", a=2) == ToolResult(success=False, error="no", metadata={"a": 2})


@pytest.mark.parametrize(
    ("params", "named"),
    [({}, "'selector'"), ({"selector": 1}, "'selector'"), ({"selector": "a", "timeout": True}, "'timeout'")],
)
def test_parameters_are_validated(params: dict[str, Any], named: str) -> None:
    valid, error = ClickTool().validate_parameters(params)
    assert valid is False
    assert error is not None
    assert named in error


def test_right_parameters_are_right() -> None:
    assert ClickTool().validate_parameters({"selector": "#a", "timeout": 1.5}) == (True, None)


async def test_execution(registry: ToolRegistry, page: PageController) -> None:
    result = await registry.execute("click", {"selector": "#submit-btn"})
    assert (result.success, result.data) == (True, {"clicked": "#submit-btn", "success": True})
    assert page.button.clicks == 1
    assert page.waited == [5000]
    failed = await registry.execute("click", {"selector": "#none", "timeout": 1})
    assert (failed.success, failed.error) == (False, "Failed to click #none: no such element")


@pytest.mark.parametrize(
    ("name", "params", "code"),
    [
        ("nonsense", {}, "tool_not_found"),
        ("click", {}, "invalid_arguments"),
        ("click", {"selector": "#a", "timeout": True}, "invalid_arguments"),
        ("click", {"selector": "#a", "timeout": "5"}, "invalid_arguments"),
    ],
)
async def test_execution_never_raises(registry: ToolRegistry, name: str, params: dict[str, Any], code: str) -> None:
    result = await registry.execute(name, params)
    assert (result.success, result.error_code) == (False, code)
    assert isinstance(result, ToolResult)


async def test_the_timeout_is_enforced() -> None:
    class Slow(BaseTool):
        metadata = ToolMetadata(name="slow", description="Wait", timeout_seconds=0.05)

        async def execute(self, **kwargs: Any) -> ToolResult:
            await asyncio.sleep(10)
            return ToolResult.success_result(None)

    registry = ToolRegistry()
    registry.register(Slow)
    assert (await registry.execute("slow", {})).error_code == "timeout"


async def test_tools_may_be_plain_functions_may_fail_and_may_end_the_task() -> None:
    class Plain(BaseTool):
        metadata = ToolMetadata(name="complete", description="Done", is_terminal=True)

        def execute(self, **kwargs: Any) -> Any:
            return "done"

    class Failing(BaseTool):
        metadata = ToolMetadata(name="failing", description="Fail")

        async def execute(self, **kwargs: Any) -> ToolResult:
            raise RuntimeError("out of order")

    registry = ToolRegistry()
    registry.register(Plain)
    registry.register_instance(Failing())
    result = await registry.execute("complete")
    assert (result.data, result.is_terminal) == ("done", True)
    failed = await registry.execute("failing", {})
    assert failed.error_code == "tool_failed"
    assert "out of order" in str(failed.error)


async def test_a_tool_that_needs_a_page_says_so() -> None:
    registry = ToolRegistry()
    registry.register(ClickTool)
    result = await registry.execute("click", {"selector": "#a"})
    assert result.success is False
    assert "'click'" in str(result.error)
    assert "page_controller" in str(result.error)


async def test_dangerous_tools_wait_for_approval() -> None:
    class Login(MyCustomTool):
        metadata = ToolMetadata(name="login", description="Log in", safety_level=SafetyLevel.DANGEROUS)

    alone = ToolRegistry()
    alone.register(Login)
    assert (await alone.execute("login")).error_code == "approval_required"
    asked: list[Any] = []

    async def approve(spec: toolcrib.ToolSpec, params: Any) -> bool:
        asked.append((spec.name, dict(params)))
        return True

    guarded = ToolRegistry(approve=approve)
    guarded.register(Login)
    assert (await guarded.execute("login", {"a": 1})).success
    assert asked == [("login", {"a": 1})]
    careful = ToolRegistry(PageController(), highest_safety_level="safe")
    careful.register(ClickTool)
    assert (await careful.execute("click", {"selector": "#submit-btn"})).error_code == "approval_required"


def test_classes_are_made_when_asked_for(registry: ToolRegistry, page: PageController) -> None:
    other = PageController()
    assert registry.get_tool("click").page is page
    assert registry.get_tool("click", page_controller=other).page is other
    assert registry.get_tool("click") is not registry.get_tool("click")
    bare = ToolRegistry()
    bare.register(ClickTool)
    assert bare.get_tool("click").page is None
    with pytest.raises(KeyError, match=r"clik.*did you mean 'click'"):
        registry.get_tool("clik")


def test_instances_are_kept_and_seen_everywhere(page: PageController) -> None:
    registry, instance = ToolRegistry(), ClickTool(page)
    registry.register_instance(instance)
    assert registry.get_tool("click") is instance
    assert registry.list_tools() == ["click"]
    assert registry.get_by_category(ToolCategory.INTERACTION) == [instance]
    assert "- click: Click on an element" in registry.generate_prompt()
    [definition] = registry.definitions("openai")
    assert definition["function"]["parameters"] == instance.metadata.to_json_schema()


def test_names_and_categories(registry: ToolRegistry) -> None:
    assert registry.list_tools() == ["click", "screenshot", "my_custom_tool"]
    assert [tool.metadata.name for tool in registry.get_by_category(ToolCategory.UTILITY)] == [
        "screenshot",
        "my_custom_tool",
    ]
    assert registry.get_by_category("form") == []
    assert len(registry) == 3
    assert "click" in registry
    assert list(registry) == registry.list_tools()


async def test_filtering_by_what_a_model_can_do(registry: ToolRegistry, caplog: pytest.LogCaptureFixture) -> None:
    capabilities = [ModelCapability.TEXT_GENERATION, ModelCapability.TOOL_CALLING]
    filtered_registry = registry.get_filtered_registry(capabilities=capabilities, warn_suboptimal=True)
    assert filtered_registry.list_tools() == ["click", "my_custom_tool"]
    assert "screenshot" in registry.list_tools()
    assert "vision" in filtered_registry.core.left_out["screenshot"]
    assert "'my_custom_tool'" in caplog.text
    assert "extended_thinking" in caplog.text
    assert (await filtered_registry.execute("click", {"selector": "#submit-btn"})).success
    assert (await filtered_registry.execute("screenshot")).error_code == "tool_not_found"
    with pytest.raises(toolcrib.ToolNotFoundError):
        filtered_registry.get_tool("screenshot")
    assert registry.filter(["vision"]).list_tools() == ["click", "screenshot", "my_custom_tool"]


def test_filtering_is_quiet_unless_asked(registry: ToolRegistry, caplog: pytest.LogCaptureFixture) -> None:
    registry.get_filtered_registry([])
    assert caplog.text == ""


@pytest.mark.parametrize(("old", "new"), sorted(ALIASES.items()))
async def test_later_names_lead_to_the_same_tools(old: str, new: str) -> None:
    registry = ToolRegistry()
    registry.register(type("Renamed", (MyCustomTool,), {"metadata": ToolMetadata(name=new, description="d")}))
    assert registry.get_tool(old).metadata.name == new
    assert old in registry
    assert (await registry.execute(old, {"a": 1})).data == {"a": 1}
    registry.register(type("Own", (MyCustomTool,), {"metadata": ToolMetadata(name=old, description="d")}))
    assert registry.get_tool(old).metadata.name == old


class NoMetadata(BaseTool):
    async def execute(self, **kwargs: Any) -> ToolResult:
        return ToolResult.success_result(None)


class WrongMetadata(NoMetadata):
    metadata = {"name": "x"}  # type: ignore[assignment]


class NoExecute(BaseTool):
    metadata = ToolMetadata(name="x", description="d")


@pytest.mark.parametrize("cls", [NoMetadata, WrongMetadata, NoExecute])
def test_a_wrong_class_is_named(cls: type[BaseTool]) -> None:
    registry = ToolRegistry()
    with pytest.raises(toolcrib.ToolValidationError, match=cls.__name__):
        registry.register(cls)
    assert len(registry) == 0


def test_wrong_instances_and_metadata_are_refused() -> None:
    registry = ToolRegistry()
    with pytest.raises(toolcrib.ToolValidationError, match="NoMetadata"):
        registry.register_instance(NoMetadata())
    with pytest.raises(toolcrib.ToolValidationError, match="register_instance"):
        registry.register(MyCustomTool())  # type: ignore[arg-type]
    with pytest.raises(toolcrib.ToolValidationError):
        registry.register_instance(7)
    wrong: list[dict[str, Any]] = [
        {"name": "no spaces please"},
        {"parameters": [ToolParameter("a", "string"), ToolParameter("a", "number")]},
        {"parameters": [ToolParameter("a", "str")]},
        {"timeout_seconds": -1},
        {"safety_level": "harmless"},
    ]
    for fields in wrong:
        metadata = ToolMetadata(**{"name": "x", "description": "d", **fields})
        with pytest.raises(toolcrib.ToolValidationError):
            registry.register(type("Wrong", (MyCustomTool,), {"metadata": metadata}))
    assert len(registry) == 0


def test_a_name_is_taken_once(registry: ToolRegistry) -> None:
    with pytest.raises(toolcrib.ToolExistsError, match="click"):
        registry.register(ClickTool)
    with pytest.raises(toolcrib.ToolExistsError, match="click"):
        registry.register_instance(ClickTool())
    assert len(registry) == 3


async def test_any_other_tool_can_join() -> None:
    @toolcrib.tool
    def repeat(text: str, how: dict[str, int] | None = None) -> str:
        """Say it again."""
        return text * (how or {}).get("times", 2)

    registry = ToolRegistry()
    registry.register_instance(repeat)
    tool = registry.get_tool("repeat")
    assert tool.metadata.to_json_schema() == repeat.spec.parameters
    assert (await tool.execute(text="ab")).data == "abab"
    assert tool.validate_parameters({}) == (False, "tool 'repeat' needs the argument 'text'")
    assert (await registry.execute("repeat", {"text": "a", "how": {"times": 3}})).data == "aaa"


async def test_these_tools_join_any_other_registry(page: PageController) -> None:
    registry = toolcrib.ToolRegistry([ClickTool(page), ScreenshotTool])
    assert (await registry.execute("click", {"selector": "#submit-btn"})).success
    assert (await registry.execute("screenshot")).data == "png"


texts = st.text(max_size=12)
values = st.none() | st.booleans() | st.integers() | texts | st.lists(st.integers(), max_size=2)
kinds = st.sampled_from(["string", "number", "integer", "boolean", "array", "object"])
parameters = st.builds(
    ToolParameter,
    name=texts,
    type=kinds,
    description=texts,
    required=st.booleans(),
    default=values,
    enum=st.none() | st.lists(values, min_size=1, max_size=3),
    items_type=st.none() | kinds,
)
capabilities = st.lists(st.sampled_from(ModelCapability), max_size=2)
metadata_records = st.builds(
    ToolMetadata,
    name=st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,20}", fullmatch=True),
    description=texts,
    category=st.sampled_from(ToolCategory),
    safety_level=st.sampled_from(SafetyLevel),
    parameters=st.lists(parameters, max_size=3, unique_by=lambda parameter: parameter.name),
    returns_description=texts,
    examples=st.lists(st.text(min_size=1, max_size=12), max_size=2),
    requires_page=st.booleans(),
    timeout_seconds=st.none() | st.floats(0.001, 1e6),
    is_terminal=st.booleans(),
    required_capabilities=capabilities,
    optimal_capabilities=capabilities,
)


@given(metadata_records)
def test_metadata_to_spec_and_back(metadata: ToolMetadata) -> None:
    spec = metadata.to_spec()
    assert ToolMetadata.from_spec(spec) == metadata
    again = ToolMetadata.from_spec(toolcrib.ToolSpec.from_json(spec.to_json()))
    assert again == metadata
    assert all(isinstance(each, ModelCapability) for each in again.required_capabilities)
    json.dumps(metadata.to_json_schema())


def test_every_name_of_the_original_leads_to_a_browser_tool() -> None:
    async def nothing(**kwargs: Any) -> None: ...

    registry = ToolRegistry()
    for spec in browser_specs():
        registry.register_instance(toolcrib.Tool(spec, nothing, run_async_inline))
    original = """
        navigate go_back go_forward refresh click type_text scroll hover press_key select_option check_checkbox focus
        fill wait_for_selector double_click right_click drag_and_drop upload_file evaluate_javascript get_attribute
        clear_input extract_text screenshot get_page_state page_explorer complete fail wait ask_user
        search_human search_api search_rank search detect_captcha solve_captcha wait_for_captcha_resolved
    """
    assert [name for name in original.split() if name not in registry] == []
    assert registry.get_tool("go_back").metadata.category is ToolCategory.NAVIGATION
