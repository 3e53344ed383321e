"""The toolset as a whole: what is in it, how it is described, and that each tool is tested."""

# ruff: noqa: E501

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib import ModelCapability, SafetyLevel
from toolcrib.toolsets.browser import BrowserSession, browser_registry, browser_specs

NAMES = """
goto navigate back forward refresh new_tab switch_tab close_tab list_tabs
click double_click right_click type fill clear_input press_key hover focus scroll select check drag_and_drop upload_file handle_dialog resize
fill_form submit get_form
extract_text extract_structured extract_table extract_links get_page_content get_element_info get_attribute get_page_state screenshot save_pdf
snapshot page_explorer find_element get_metadata
wait wait_for_selector wait_for_text wait_for_url wait_for_network_idle complete fail ask_user
get_cookies set_cookie clear_cookies save_state load_state console_messages network_requests block_resources set_headers download_file
evaluate_javascript mock_route
search detect_captcha wait_for_captcha_resolved solve_captcha
log debug highlight
""".split()  # noqa: SIM905  a table reads better


def test_every_tool_is_there_and_no_other() -> None:
    registry = browser_registry(BrowserSession())
    assert sorted(registry.names()) == sorted(NAMES)
    assert len(registry) == 69
    assert [spec.name for spec in browser_specs()] == [tool.name for tool in registry]


def test_every_tool_is_called_by_a_test() -> None:
    """Found in the tests' own syntax: the first argument of a call of the agent."""
    called = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                function = node.func
                if (isinstance(function, ast.Name) and function.id == "agent") or (
                    isinstance(function, ast.Attribute) and function.attr == "try_"
                ):
                    called.add(node.args[0].value)
    assert set(NAMES) - called == set()


@pytest.mark.parametrize("spec", browser_specs(), ids=lambda spec: spec.name)
def test_a_tool_is_described_in_full(spec) -> None:
    assert len(spec.description) > 10
    assert spec.description.endswith(".")
    assert spec.returns_description
    assert spec.examples
    assert all(example.call.startswith(f"{spec.name}(") for example in spec.examples)
    assert spec.category in (
        "navigation",
        "interaction",
        "form",
        "extraction",
        "system",
        "session",
        "search",
        "utility",
    )
    assert spec.timeout_seconds
    assert spec.isolation == "inline"
    assert spec.binding.python == spec.name
    undescribed = [name for name, schema in spec.parameters["properties"].items() if not schema.get("description")]
    assert undescribed == []


@pytest.mark.parametrize("spec", browser_specs(), ids=lambda spec: spec.name)
def test_the_examples_fit_the_parameters(spec) -> None:
    tool = browser_registry(BrowserSession()).get(spec.name)
    for example in spec.examples:
        call = ast.parse(example.call.replace("true", "True"), mode="eval").body
        assert isinstance(call, ast.Call)
        tool.validate({keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg})


def test_levels_and_capabilities() -> None:
    specs = {spec.name: spec for spec in browser_specs()}
    assert {name for name, spec in specs.items() if spec.safety_level is SafetyLevel.DANGEROUS} == {
        "evaluate_javascript",
        "get_cookies",
        "set_cookie",
        "save_state",
        "load_state",
        "set_headers",
    }
    assert {name for name, spec in specs.items() if ModelCapability.VISION in spec.required_capabilities} == {
        "screenshot",
        "page_explorer",
    }
    assert {name for name, spec in specs.items() if spec.is_terminal} == {"complete", "fail"}
    assert specs["click"].safety_level == "low_risk"
    assert specs["submit"].safety_level == "medium"
    assert specs["upload_file"].safety_level == "high"
    assert {name for name, spec in specs.items() if not spec.requires_page} == {
        "wait",
        "complete",
        "fail",
        "ask_user",
        "log",
    }


def test_forms_are_what_the_seed_calls_forms() -> None:
    forms = {spec.name for spec in browser_specs() if spec.category == "form"}
    assert forms == {"fill_form", "submit", "select", "get_form"}


async def test_what_logs_in_needs_approval() -> None:
    registry = browser_registry(BrowserSession())
    for name, arguments in {"set_cookie": {"name": "a", "value": "b"}, "load_state": {}, "save_state": {}}.items():
        assert (await registry.execute(name, arguments)).error_code == "approval_required"


def test_text_models_do_not_see_vision_tools() -> None:
    registry = browser_registry(BrowserSession())
    blind = registry.for_model([ModelCapability.TEXT_GENERATION, ModelCapability.TOOL_CALLING])
    assert set(NAMES) - set(blind.names()) == {"screenshot", "page_explorer"}
    assert "screenshot" in registry.for_model([ModelCapability.VISION])


def test_every_provider_takes_the_tools() -> None:
    registry = browser_registry(BrowserSession())
    for kind in ("openai", "anthropic", "gemini", "mcp"):
        assert len(registry.definitions(kind)) == 69


def test_specs_need_no_playwright() -> None:
    script = "import sys; sys.modules['playwright'] = None; from toolcrib.toolsets.browser import browser_specs; print(len(browser_specs()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "69"
