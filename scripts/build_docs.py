#!/usr/bin/env python3
"""Write what can be read off: docs/reference/ from the code, and the index of docs/decisions/ from the decisions.

The same source gives the same bytes. A test compares them with what is committed, so the reference is never stale.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
NOTE = "<!-- Made by scripts/build_docs.py (make docs). Change the code, not this page. -->\n"


def cli_page() -> str:
    import typer.main

    from toolcrib.surfaces.cli.app import build_app

    lines = [
        "# The command line",
        "`brain` takes the same commands; without `--store` it keeps its tools in `~/.thebrain/config/tools.json`.",
        _prose(
            """
            Exit status: 0 yes or done, 1 a negative answer, 2 wrong usage, 3 not found, 4 invalid input, 5 refused,
            6 the store failed, 70 a defect, 130 interrupted.
            """
        ),
    ]
    program = typer.main.get_command(build_app())
    lines += ["## Options before any command", _options(program)]
    for path, command in _commands(program, ("toolcrib",)):
        lines += [f"## {' '.join(path)}", f"```\n{_usage(path, command)}\n```", _dedented(command.help or "")]
        lines += [part for part in (_arguments(command), _options(command)) if part]
        if command.epilog:
            examples = command.epilog.removeprefix("Example:").split("  |  ")
            lines.append("```\n" + "\n".join(example.strip() for example in examples) + "\n```")
    return _page(lines)


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", {})
    for name in sorted(children):
        child = children[name]
        if getattr(child, "commands", None):
            yield from _commands(child, (*path, name))
        else:
            yield (*path, name), child


def _usage(path: tuple[str, ...], command: Any) -> str:
    arguments = [_argument_name(param) for param in command.params if param.param_type_name == "argument"]
    return " ".join([*path, *arguments, "[OPTIONS]"])


def _argument_name(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    return name if name.startswith("[") or param.required else f"[{name}]"


def _arguments(command: Any) -> str:
    rows = [
        (f"`{_argument_name(param)}`", param.help)
        for param in command.params
        if param.param_type_name == "argument" and getattr(param, "help", None)
    ]
    return _table(("Argument", "Meaning"), rows) if rows else ""


def _options(command: Any) -> str:
    rows = []
    if hasattr(command, "fill_defaults"):
        command.fill_defaults()
    for param in command.params:
        if param.param_type_name != "option" or param.name in ("install_completion", "show_completion"):
            continue
        names = ", ".join([*param.opts, *param.secondary_opts])
        value = "" if getattr(param, "is_flag", False) else f" {param.metavar or 'VALUE'}"
        default = param.default if param.show_default and param.default not in (None, "", False) else ""
        rows.append((f"`{names}{value}`", param.help or "", f"`{default}`" if default != "" else ""))
    return _table(("Option", "Meaning", "Default"), rows) if rows else ""


def settings_page() -> str:
    from toolcrib.settings import describe

    lines = [
        "# Settings",
        _prose(
            """
            A value comes from its variable, else from `toolcrib.toml`, else it is the default. The file is the one
            that `TOOLCRIB_CONFIG` names, else `toolcrib.toml` in the working folder, else `toolcrib/toolcrib.toml`
            in the user's configuration folder. In the file a table is a prefix: `[jwt] issuer = ...` is
            `jwt_issuer`. A list in a variable has commas (`a,b`) or is JSON (`["a", "b"]`). `toolcrib config`
            prints what is in force.
            """
        ),
    ]
    rows = []
    for setting in describe():
        meaning = setting.description
        if setting.choices:
            meaning += f" One of {', '.join(f'`{choice}`' for choice in setting.choices)}."
        if setting.secret:
            meaning += " Secret: masked wherever it is shown."
        default = ",".join(setting.default) if isinstance(setting.default, tuple) else setting.default
        rows.append((f"`{setting.variable}`", setting.type, f"`{default}`" if default != "" else "", meaning))
    lines.append(_table(("Variable", "Type", "Default", "Meaning"), rows))
    return _page(lines)


def errors_page() -> str:
    from toolcrib.core import errors
    from toolcrib.surfaces.http import errors as door_errors

    tree = (errors.__doc__ or "").split("\n\n")[1]
    lines = [
        "# Errors",
        _prose(
            """
            Every error is one sentence for a person (`str(error)`) and a stable `code` for programs; `retryable`
            says whether trying again can help. `registry.execute` raises none of them: it answers with the code in
            `ToolResult.error_code`.
            """
        ),
        f"```text\n{_dedented(tree)}\n```",
        "What each means at each door:",
    ]
    rows = []
    kinds = dict.fromkeys(
        kind
        for module in (errors, door_errors)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, errors.ToolcribError)
    )
    for kind in kinds:
        answer, retryable = kind.answer, "yes" if kind.retryable else ""
        rows.append((f"`{kind.__name__}`", f"`{kind.code}`", retryable, answer.http, answer.rpc, int(answer.exit)))
    lines.append(_table(("Error", "Code", "Retry helps", "HTTP", "JSON-RPC", "Exit"), rows))
    return _page(lines)


def spec_page() -> str:
    from toolcrib.core.spec import Binding, ToolExample, ToolSpec

    lines = [
        "# ToolSpec",
        _prose(
            """
            What a tool is, said once. Only `name` and `description` are required; absence is the empty string, list
            or object. `spec.to_dict()` has every field, `ToolSpec.parse(data)` checks one, `spec.with_changes(...)`
            makes a changed copy.
            """
        ),
    ]
    for model in (ToolSpec, ToolExample, Binding):
        properties = model.model_json_schema()["properties"]
        rows = []
        for name, field in model.model_fields.items():
            meaning = MEANINGS[name] if model is ToolSpec else field.description or MEANINGS[f"{model.__name__}.{name}"]
            default = "required" if field.is_required() else f"`{_default(field)}`"
            rows.append((f"`{name}`", _json_type(properties[name]), default, meaning))
        lines += [f"## {model.__name__}", " ".join((model.__doc__ or "").replace("``", "`").split())]
        lines.append(_table(("Field", "Type", "Default", "Meaning"), rows))
    return _page(lines)


MEANINGS = {
    "name": "Letters, digits, `_`, `-`, `.`; 1 to 128 of them, the first a letter or digit. Unique",
    "display_name": "A name for people",
    "description": "What the tool does, for the model that chooses it",
    "version": "The tool's own version; its major number says whether an update may break callers",
    "author": "Who made it",
    "deprecated": "Whether it should no longer be chosen",
    "replaced_by": "The tool to use instead",
    "tool_type": "What kind of brick it is: `browser`, `http_client`, `parser` ...",
    "category": "A group for people and prompts",
    "tags": "Free labels to filter by",
    "capabilities": "What it can do: `html_parsing`, `javascript_rendering` ...",
    "parameters": "JSON Schema of its arguments: an object",
    "returns": "JSON Schema of its result; empty means any",
    "returns_description": "The result in words",
    "api_spec": "The interface as published, if it says more than `parameters` and `returns`",
    "actions": "Custom actions in the publisher's own DSL",
    "examples": "Uses of it, see ToolExample",
    "usage_notes": "When and how to use it",
    "limitations": "What it cannot do",
    "manual": "The long text",
    "compatibilities": "Tools it stacks with: names, `type:x`, or `type:*`",
    "incompatible_with": "Tools it does not stack with, the same way",
    "required_config": "Keys that must be configured before it can run",
    "package_name": "The Python package behind it",
    "pip_install_command": "How to install it",
    "required_capabilities": "What a model must be able to do to use it",
    "optimal_capabilities": "What a model should be able to do to use it well",
    "requires_page": "Whether it needs an open web page",
    "is_terminal": "Whether it ends the task it is called for",
    "execution_mode": "`sync`, `async`, `batch`, or the publisher's word",
    "isolation": "Where Python code runs: `inline`, `thread`, `process`; empty means by its kind",
    "timeout_seconds": "Its deadline",
    "cacheable": "Whether equal arguments give an equal result, for a while",
    "max_result_characters": "A longer result reaches a model as a preview and a handle",
    "safety_level": "`safe`, `low_risk`, `medium`, `high` or `dangerous`",
    "binding": "How a catalogued tool is run, see Binding",
    "policy_rule_uri": "The policy rule that governs it",
    "validation_policy_rule_uri": "The policy rule that governs its validation",
    "validation_mode": "How it is validated, in the publisher's word",
    "credentials": "Secrets it runs with: sealed in the store, masked in every answer",
    "metadata": "Anything else",
    "ToolExample.description": "What the example shows",
    "ToolExample.input": "The arguments",
    "ToolExample.output": "The result",
    "ToolExample.explanation": "Why it is so",
    "ToolExample.call": "The use as text, if that is all there is",
}


def _json_type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_json_type(part) for part in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_json_type(schema.get('items', {}))}"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    return str(schema.get("type", "any"))


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if hasattr(value, "model_dump"):
        return "{}"
    plain = getattr(value, "value", value)
    return json.dumps(list(plain) if isinstance(plain, tuple) else plain)


def rest_page() -> str:
    from toolcrib import __version__
    from toolcrib.surfaces.http.openapi import describe
    from toolcrib.surfaces.service import ENDPOINTS

    description = describe(ENDPOINTS, __version__)
    lines = [
        "# REST",
        _prose(
            """
            `toolcrib serve` answers these paths; as OpenAPI they are at `/openapi.json` and `/docs`. Errors are
            problem JSON (RFC 9457) with the codes of [errors.md](errors.md).
            """
        ),
    ]
    rows = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            statuses = ", ".join(sorted(status for status in operation["responses"] if status.startswith("2")))
            rows.append((f"`{method.upper()} {path}`", operation.get("summary", ""), statuses))
    lines.append(_table(("Request", "Meaning", "Success"), rows))
    return _page(lines)


SPECS = Path(__file__).parents[1] / "src/toolcrib/toolsets/scraping/specs.json"
BRICK_EXAMPLES: dict[str, dict[str, Any]] = {
    "parser": {"rows": "article", "selectors": {"title": "h2", "link": "a@href"}},
    "data_storage": {"path": "rows.out", "key": "link"},
    "proxy_manager": {"proxies": ["http://proxy.example:8080"]},
    "extruct": {"syntaxes": ["json-ld"]},
}


def bricks_page() -> str:
    from toolcrib.stacking import PipelineDefinition, StepDefinition
    from toolcrib.stacking.recovery import Remedy
    from toolcrib.toolsets.scraping import BRICKS

    lines = [
        "# Bricks",
        _prose(
            """
            The tools that ship as bricks, each with its settings on a page of its own, and what a pipeline file may
            hold. The guide is [Pipelines](../guides/pipelines.md).
            """
        ),
    ]
    rows = []
    for name, brick in BRICKS.items():
        shape = f"{brick.takes.__name__}, {brick.gives.__name__}"
        rows.append((f"[`{name}`](bricks/{name}.md)", brick.spec.tool_type, shape, brick.spec.description))
    lines.append(_table(("Brick", "Type", "Takes, gives", "What it does"), rows))
    for title, model in (("A pipeline", PipelineDefinition), ("A step", StepDefinition), ("A remedy", Remedy)):
        text = " ".join((model.__doc__ or "").replace("``", "`").split())
        lines += [f"## {title}", _prose(text), _fields(model.model_json_schema())]
    lines.append("```{toctree}\n:hidden:\n:glob:\n\nbricks/*\n```")
    return _page(lines)


def brick_page(name: str) -> str:
    from toolcrib.toolsets.scraping import BRICKS

    brick = BRICKS[name]
    spec, schema = brick.spec, brick.Config.model_json_schema()
    lines = [f"# {name}", _prose(spec.description)]
    if spec.deprecated:
        [why] = brick().missing()
        lines.append(_prose(f"{why}. A pipeline that names it is refused with that sentence. {spec.limitations[0]}"))
    else:
        lines.append(_prose((inspect.getdoc(brick) or "").replace("``", "`")))
        example = {"tool": name, "config": BRICK_EXAMPLES.get(name) or BRICK_EXAMPLES.get(spec.tool_type, {})}
        lines.append(f"```json\n{json.dumps(example)}\n```")
    keys = ", ".join(f"`{key}`" for key in spec.required_config)
    facts = [
        ("Takes", f"`{brick.takes.__name__}`"),
        ("Gives", f"`{brick.gives.__name__}`"),
        ("Type", f"`{spec.tool_type}`"),
        ("Runs", f"`{spec.execution_mode}`"),
        ("Install", f"`{spec.pip_install_command}`"),
        ("Keys", keys),
        ("Stacks with", ", ".join(f"`{one}`" for one in spec.compatibilities)),
        ("Does not stack with", ", ".join(f"`{one}`" for one in spec.incompatible_with)),
        ("Can do", ", ".join(f"`{one}`" for one in spec.capabilities)),
    ]
    lines.append(_table(("", ""), [fact for fact in facts if fact[1]]))
    if schema.get("properties"):
        lines += ["## Settings", _fields(schema)]
    for other, nested in schema.get("$defs", {}).items():
        lines += [f"## {other}", _prose(nested.get("description", "")), _fields(nested)]
    return _page(lines)


def _fields(schema: dict[str, Any]) -> str:
    """The settings in a JSON Schema: what each is, what it is by itself, what it means."""
    rows = []
    for name, field in schema["properties"].items():
        required = name in schema.get("required", ())
        default = "required" if required else f"`{json.dumps(field.get('default', {}))}`"
        rows.append((f"`{name}`", _json_type(field), default, f"{field['description']}{_choices(field)}"))
    return _table(("Setting", "Type", "Default", "Meaning"), rows)


def _choices(field: dict[str, Any]) -> str:
    listed = field.get("enum") or field.get("items", {}).get("enum") or ()
    least, most = field.get("minimum", field.get("exclusiveMinimum")), field.get("maximum")
    if listed:
        return f"; one of {', '.join(f'`{one}`' for one in listed)}"
    return f"; {least} to {most}" if least is not None and most is not None else ""


def decisions_page() -> str:
    lines = [
        "# Decisions",
        _prose(
            """
            Why things are as they are: one page a decision, with its context, the decision and its consequences.
            A decision is not rewritten. If it no longer holds, a new one says so, and the old one's status becomes
            `superseded by NNNN`. Numbers are reserved when the work is shared out, so there are gaps.
            """
        ),
    ]
    rows = []
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        title, status = [line for line in path.read_text(encoding="utf-8").splitlines() if line][:2]
        if not title.startswith("# ") or not status.startswith("Status: "):
            raise ValueError(f"{path.name} does not begin with '# TITLE' and 'Status: ...'")
        name = re.sub(r"^# (\d+\. )?", "", title)
        rows.append((path.name[:4], f"[{name}]({path.name})", status.removeprefix("Status: ")))
    lines.append(_table(("Number", "Decision", "Status"), rows))
    lines.append("```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```")
    return _page(lines)


PYTHON_ROOMS = {
    "define": "Defining tools",
    "core": "What a tool is",
    "registry": "Live tools",
    "calling": "Watching calls",
    "catalogue": "Kept tools",
    "bootstrap": "Opening a catalogue",
}
PYTHON_MODULES = (
    "toolcrib.layers", "toolcrib.agents", "toolcrib.testing", "toolcrib.toolsets.browser", "toolcrib.ports",
)  # fmt: skip


def python_page() -> str:
    """What autodoc is asked for; the site shows the docstrings, this page by itself only the names."""
    import toolcrib

    rooms: dict[str, list[str]] = {room: [] for room in (*PYTHON_ROOMS, "errors")}
    for name in toolcrib.__all__:
        module = getattr(toolcrib, name).__module__.split(".")
        rooms[module[1] if len(module) > 1 else "errors"].append(name)
    lines = ["# Python", _prose("Everything that `toolcrib` exports, and the ports that an adapter fills.")]
    for room, names in rooms.items():
        lines.append(f"## {PYTHON_ROOMS.get(room, 'Errors')}")
        lines.append(_autodoc(_directive(getattr(toolcrib, name), name) for name in names))
    for module_name in PYTHON_MODULES:
        lines += [f"## {module_name}", _autodoc([f".. automodule:: {module_name}\n   :members:"])]
    return _page(lines)


def _directive(value: object, name: str) -> str:
    if not isinstance(value, type):
        return f".. autofunction:: toolcrib.{name}"
    members = "" if issubclass(value, Exception) else "\n   :members:"
    return f".. autoclass:: toolcrib.{name}{members}"


def _autodoc(directives: Iterable[str]) -> str:
    return "```{eval-rst}\n" + "\n\n".join(directives) + "\n```"


def _prose(text: str) -> str:
    return "\n".join(textwrap.wrap(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False))


def _page(parts: list[str]) -> str:
    title, *rest = parts
    return "\n\n".join([title, NOTE.rstrip(), *rest]) + "\n"


def _table(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    def line(cells: tuple[Any, ...]) -> str:
        return "| " + " | ".join(_cell(cell) for cell in cells) + " |"

    return "\n".join([line(columns), "|" + "---|" * len(columns), *map(line, rows)])


def _cell(value: Any) -> str:
    return " ".join(str(value).replace("|", "\\|").split())


def _dedented(text: str) -> str:
    lines = text.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    if lines and lines[0].startswith(" " * margin):
        lines[0] = lines[0][margin:] if not lines[0][:margin].strip() else lines[0]
    return "\n".join([*lines[:1], *(line[margin:] for line in lines[1:])]).strip("\n")


BRICK_NAMES = [str(spec["name"]) for spec in json.loads(SPECS.read_text(encoding="utf-8"))]
PAGES: dict[str, Callable[[], str]] = {
    "decisions/README.md": decisions_page,
    "reference/bricks.md": bricks_page,
    **{f"reference/bricks/{name}.md": partial(brick_page, name) for name in BRICK_NAMES},
    "reference/cli.md": cli_page,
    "reference/errors.md": errors_page,
    "reference/python.md": python_page,
    "reference/rest.md": rest_page,
    "reference/settings.md": settings_page,
    "reference/toolspec.md": spec_page,
}


def main() -> None:
    for name, build in PAGES.items():
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / name).write_text(build(), encoding="utf-8")
        print(f"docs/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
