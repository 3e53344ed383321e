"""The code samples of FlyBrowser's page, one after the other, with only their imports changed.

Its samples of whole classes are what a program may rely on: their fields, in their order, and their methods. The two
that drive a browser are in ``test_flybrowser_browser.py``.
"""

# ruff: noqa: UP006, UP035, UP045  the samples are as they are

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import pickle
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Type

import pytest
from tests.dialects.flybrowser_samples import ScreenshotTool

import toolcrib
from toolcrib.dialects import flybrowser
from toolcrib.dialects.flybrowser import (
    BaseTool,
    ModelCapability,
    PageController,
    SafetyLevel,
    ToolCategory,
    ToolMetadata,
    ToolParameter,
    ToolRegistry,
    ToolResult,
)


class Named(BaseTool):
    """A tool written as the sample of BaseTool has it."""

    metadata: ToolMetadata = ToolMetadata(name="named", description="d")

    def __init__(self, page_controller: Optional[PageController] = None) -> None:
        """Initialize the tool with optional page controller."""
        self.page = page_controller

    async def execute(self, **kwargs: Any) -> ToolResult:
        return ToolResult.success_result(kwargs, page=self.page)


def test_base_tool() -> None:
    with pytest.raises(TypeError, match="execute"):
        BaseTool()
    tool = Named("the page")
    assert tool.page == "the page"
    valid, error = tool.validate_parameters({})
    assert (valid, error) == (True, None)
    tool.page = None
    assert tool.page is None


def test_tool_metadata() -> None:
    metadata = ToolMetadata(
        "click", "Click", ToolCategory.INTERACTION, SafetyLevel.LOW_RISK,
        [ToolParameter("selector", "string")], "Confirmation", ['click(selector="#a")'], True, 30.0, False,
        [ModelCapability.TOOL_CALLING], [ModelCapability.VISION],
    )  # fmt: skip
    names = """
        name description category safety_level parameters returns_description examples requires_page timeout_seconds
        is_terminal required_capabilities optimal_capabilities
    """
    assert [each.name for each in dataclasses.fields(metadata)][:12] == names.split()
    metadata.description = "Click on something"
    assert metadata.to_spec().description == "Click on something"


def test_categories_and_safety_levels() -> None:
    categories = {"NAVIGATION", "INTERACTION", "EXTRACTION", "FORM", "SYSTEM", "UTILITY"}
    assert {each.name for each in ToolCategory} == categories
    assert all(each.value == each.name.lower() for each in ToolCategory)
    assert issubclass(ToolCategory, str)
    levels = {
        "SAFE": "safe",
        "LOW_RISK": "low_risk",
        "MEDIUM_RISK": "medium",
        "HIGH_RISK": "high",
        "DANGEROUS": "dangerous",
    }
    assert {each.name: each.value for each in SafetyLevel} == levels


def test_tool_parameter() -> None:
    fields = {each.name: each.default for each in dataclasses.fields(ToolParameter)}
    missing = dataclasses.MISSING
    assert fields == {
        "name": missing, "type": missing, "description": "", "required": False, "default": None, "enum": None,
        "items_type": None,
    }  # fmt: skip


def test_tool_result() -> None:
    result = ToolResult(success=True)
    assert (result.data, result.error, result.metadata) == (None, None, {})
    assert ToolResult(True, 1, None, {"a": 2}) == ToolResult.success_result(1, a=2)
    assert ToolResult(False, None, "no", {"a": 2}) == ToolResult.failure_result("no", a=2)
    result.data, result.success = {"seen": 1}, False
    result.page_url = "https://example.com"  # type: ignore[attr-defined]
    assert result.page_url == "https://example.com"  # type: ignore[attr-defined]
    for same in (copy.copy(result), pickle.loads(pickle.dumps(result))):
        assert vars(same) == {"page_url": "https://example.com"}
        assert (same.data, same.success) == ({"seen": 1}, False)
    assert isinstance(result, toolcrib.ToolResult)


def test_a_failure_keeps_its_code_and_takes_an_exception() -> None:
    failure = ToolResult.failure_result(LookupError("no such element"), error_code="element_missing", tries=3)
    assert (failure.error, failure.error_code) == ("no such element", "element_missing")
    assert failure.metadata == {"error_code": "element_missing", "tries": 3}
    assert ToolResult.failure_result(RuntimeError()).error == "RuntimeError"
    assert ToolResult.failure_result(toolcrib.DeniedError("no")).error_code == "denied"


def test_tool_registry() -> None:
    def parameters(name: str) -> list[str]:
        return list(inspect.signature(getattr(ToolRegistry, name)).parameters)

    assert parameters("register")[:2] == ["self", "tool_class"]
    assert parameters("register_instance")[:2] == ["self", "tool_instance"]
    assert parameters("get_tool") == ["self", "name", "kwargs"]
    assert parameters("list_tools") == ["self"]
    assert parameters("get_by_category") == ["self", "category"]
    assert parameters("get_filtered_registry") == ["self", "capabilities", "warn_suboptimal"]
    registered: List[Type[BaseTool]] = [Named]
    registry = ToolRegistry()
    for each in registered:
        registry.register(each)
    found: Dict[str, BaseTool] = {name: registry.get_tool(name) for name in registry.list_tools()}
    assert type(found["named"]) is Named


def test_the_sample_of_filtering(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    registry.register(ScreenshotTool)
    registry.register(Named)
    model_info = SimpleNamespace(capabilities=[ModelCapability.TEXT_GENERATION])
    # Filter tools based on model capabilities
    filtered_registry = registry.get_filtered_registry(
        capabilities=model_info.capabilities,
        warn_suboptimal=True,  # Log warnings for suboptimal tools
    )
    assert filtered_registry.list_tools() == ["named"]


async def test_replace_takes_the_place_of_a_tool_of_the_name() -> None:
    class Other(Named):
        async def execute(self, **kwargs: Any) -> ToolResult:
            return ToolResult.success_result("other")

    registry = ToolRegistry()
    registry.register(Named)
    registry.register(Other, replace=True)
    assert (await registry.execute("named")).data == "other"
    assert isinstance(registry.get_tool("named"), Other)
    first = Named()
    registry.register_instance(first, replace=True)
    assert registry.get_tool("named") is first
    assert registry.list_tools() == ["named"]
    registry.register(Other, replace=True)
    assert isinstance(registry.get_tool("named"), Other)


async def test_a_result_that_came_too_late_says_timed_out() -> None:
    class Slow(BaseTool):
        metadata = ToolMetadata(name="slow", description="Wait", timeout_seconds=0.05)

        async def execute(self, **kwargs: Any) -> ToolResult:
            await asyncio.sleep(30)
            return ToolResult.success_result(None)

    registry = ToolRegistry()
    registry.register(Slow)
    result = await registry.execute("slow")
    assert "timed out" in str(result.error)
    assert (result.error_code, isinstance(result, ToolResult)) == ("timeout", True)


async def test_results_of_the_registry_are_of_the_dialect_and_keep_what_a_tool_added() -> None:
    class Odd(Named):
        async def execute(self, **kwargs: Any) -> ToolResult:
            result = ToolResult.failure_result(ValueError("odd"), error_code="odd")
            result.seen = [1]  # type: ignore[attr-defined]
            return result

    registry = ToolRegistry()
    registry.register(Odd)
    result = await registry.execute("named")
    assert (result.error_code, result.metadata["error_code"]) == ("odd", "odd")
    assert result.seen == [1]  # type: ignore[attr-defined]
    assert type(await registry.execute("nothing")) is ToolResult


def test_the_names_of_the_module() -> None:
    missing = [name for name in flybrowser.__all__ if not hasattr(flybrowser, name)]
    assert missing == []
    with pytest.raises(AttributeError, match="Nothing"):
        flybrowser.Nothing  # noqa: B018
