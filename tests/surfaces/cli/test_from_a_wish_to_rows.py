"""The Brain without Python: a wish, a plan, a file, rows; and a step of one's own out of tools.json."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.website import serve_site
from tests.surfaces.cli.conftest import BIN, Answer, Cli, one_sentence
from tests.surfaces.cli.test_program import terminal

from toolcrib.toolsets.scraping.practice import Site

WISH = ("http_requests", "html_parsing", "jsonlines_export")
LOOK = (
    "--rows", "article.book", "--select", "title=h3 a", "--select", "link=h3 a@href", "--follow", "a.next@href",
    "-o", "books.jsonl",
)  # fmt: skip


@pytest.fixture
def site() -> Iterator[Site]:
    with serve_site() as running:
        yield running


@pytest.fixture
def brain(cli: Cli) -> Cli:
    def call(*words: str) -> Answer:
        return cli(*words, program="brain")

    return call


@pytest.fixture
def filled(brain: Cli) -> Cli:
    assert brain("tools", "add", "--samples").status == 0
    return brain


def rows(file: str = "books.jsonl") -> list[Any]:
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("file", ["books.toml", "books.json"])
def test_a_wish_becomes_a_file_and_the_file_rows(filled: Cli, site: Site, file: str):
    planned = filled("tools", "plan", *WISH, "--write", file, "--start", f"{site.url}/books/1", *LOOK)
    assert (planned.status, planned.err) == (0, "")
    assert planned.json["written"] == file
    assert "jsonlines" in planned.json["pipeline"]
    assert planned.json["stacks"][0]["runnable"] is True
    assert filled("pipeline", "check", file).json["ok"] is True
    run = filled("pipeline", "run", file)
    assert (run.status, run.json["done"], run.json["items"]) == (0, 3, 10)
    assert (rows()[0]["title"], len(rows())) == ("The Left Hand of Darkness", 10)


def test_without_more_words_the_file_has_settings_to_begin_with(filled: Cli, site: Site):
    assert filled("tools", "plan", *WISH, "--write", "books.toml", "--select", "title=title").status == 0
    nowhere = filled("pipeline", "run", "books.toml")
    assert nowhere.status == 4
    assert "has no address to begin with; give 'start' in its file" in one_sentence(nowhere, "brain")
    assert filled("pipeline", "run", "books.toml", "--start", f"{site.url}/books/1").status == 0
    assert rows("rows.jsonl")[0]["title"] == "Books, page 1"


def test_a_toml_file_tells_what_else_can_be_set(filled: Cli):
    filled(
        "tools",
        "plan",
        *WISH,
        "--write",
        "books.toml",
        "--start",
        "https://a.example/?q=\"'\\",
        "--strict",
        "--select",
        "a=b",
    )
    text = Path("books.toml").read_text(encoding="utf-8")
    assert "# config.timeout = 30.0  # seconds for a whole answer" in text
    assert '# config.rows = ""  # selects the elements' in text
    assert tomllib.loads(text)["start"] == ["https://a.example/?q=\"'\\"]
    uncommented = text.replace("\n# config.", "\nconfig.")
    steps = tomllib.loads(uncommented)["steps"]
    assert steps[0]["config"]["timeout"] == 30.0
    Path("all.toml").write_text(uncommented, encoding="utf-8")
    assert filled("pipeline", "check", "all.toml").json["ok"] is True


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("html_parsing", "--write", "x.json"), 1, "want a capability too of a tool that fetches"),
        (("http_requests", "--write", "x.yaml"), 2, "ends in .json or .toml, unlike 'x.yaml'"),
        (("http_requests", "--write", "there.json"), 4, "'there.json' exists already; name another file, or pass --re"),
        (("http_requests", "--write", "x.json", "--rows", "a"), 4, "has a setting 'rows'"),
        (("http_requests", "html_parsing", "--write", "x.json", "--select", "a"), 2, "--select is FIELD=SELECTOR"),
        (("http_requests", "--rows", "a"), 2, "belong to --write FILE"),
        (("http_requests", "--write", "no-folder/x.json"), 6, "no such file or directory"),
    ],
)
def test_a_plan_that_cannot_be_written_says_why(filled: Cli, words: tuple[str, ...], status: int, said: str):
    Path("there.json").write_text("mine", encoding="utf-8")
    refused = filled("tools", "plan", *words)
    assert refused.status == status, refused
    assert said in one_sentence(refused, "brain")
    assert not Path("x.json").exists()
    assert Path("there.json").read_text(encoding="utf-8") == "mine"


def test_a_file_is_written_over_if_that_is_said(filled: Cli):
    Path("there.json").write_text("mine", encoding="utf-8")
    assert filled("tools", "plan", "http_requests", "--write", "there.json", "--replace").status == 0
    assert json.loads(Path("there.json").read_bytes())["steps"]


def test_a_plan_without_tools_says_how_to_get_some(brain: Cli):
    empty = brain("tools", "plan", *WISH)
    assert empty.status == 1
    assert "'tools add --samples'" in empty.json["nearest"]["reasons"][0]


def test_a_pipeline_of_tools_that_are_not_in_the_file_is_refused_and_told_how(brain: Cli, site: Site):
    written = {"steps": [{"tool": "httpx"}, {"tool": "parsel", "config": {"selectors": {"t": "title"}}}]}
    Path("p.json").write_text(json.dumps(written | {"start": [f"{site.url}/books/1"]}), encoding="utf-8")
    refused = brain("pipeline", "run", "p.json")
    assert refused.status == 1
    said = one_sentence(refused, "brain")
    assert "'httpx' and 'parsel' are not in the catalogue (not_in_catalogue)" in said
    assert "'tools add --samples'" in said
    assert not site.hits
    assert brain("pipeline", "check", "p.json").json["ok"] is False
    brain("tools", "add", "--samples")
    assert brain("pipeline", "run", "p.json").status == 0


def test_an_entry_of_another_mode_than_its_brick_is_refused(filled: Cli):
    httpx = next(tool for tool in filled("tools", "list").json if tool["name"] == "httpx")
    Path("httpx.json").write_text(json.dumps(httpx | {"execution_mode": "sync"}), encoding="utf-8")
    assert filled("tools", "add", "-f", "httpx.json").status == 0
    Path("p.json").write_text(json.dumps([{"tool": "httpx"}]), encoding="utf-8")
    said = filled("pipeline", "check", "p.json").json["problems"]
    assert "'httpx' is sync, but its brick is async (execution_mode)" in said[0]


def test_what_cannot_run_here_comes_last_and_says_why(brain: Cli):
    for name, keys in (("scraperapi", ["SCRAPERAPI_KEY"]), ("nobody", []), ("httpx", [])):
        entry = {"name": name, "description": "x", "tool_type": name, "package_name": name, "capabilities": ["get"],
                 "execution_mode": "async", "required_config": keys}  # fmt: skip
        Path("tool.json").write_text(json.dumps(entry), encoding="utf-8")
        assert brain("tools", "add", "-f", "tool.json").status == 0
    stacks = brain("tools", "plan", "get").json["stacks"]
    assert [(stack["tools"], stack["runnable"]) for stack in stacks] == [
        (["httpx"], True), (["nobody"], False), (["scraperapi"], False),
    ]  # fmt: skip
    assert "no brick for 'nobody' here" in stacks[1]["missing"][0]
    assert "needs the key 'SCRAPERAPI_KEY'" in stacks[2]["missing"][0]
    assert any(reason.startswith("cannot run here: ") for reason in stacks[1]["reasons"])


def test_what_nobody_keeps_up_any_more_comes_behind_what_lacks_a_key(filled: Cli):
    stacks = filled("tools", "plan", "anti_cloudflare", "html_parsing").json["stacks"]
    assert "scraperapi" in stacks[0]["tools"]
    assert not any("cloudscraper" in stack["tools"] for stack in stacks[:4])


@pytest.mark.usefixtures("filled")
def test_a_terminal_is_told_what_to_do_next():
    status, shown = terminal(BIN / "brain", "tools", "plan", "http_requests", "--limit", "1", "--write", "a.toml")
    assert status == 0
    assert "to a.toml; run it with: brain pipeline run a.toml" in " ".join(shown.split())


CHEAP = """
import json, sys
given = json.load(sys.stdin)
rows = [row for row in given["records"] if float(row["price"]) < given.get("below", 6)]
print(json.dumps({"records": rows}))
"""


def test_an_entry_of_ones_own_is_a_step_and_a_tool(filled: Cli, site: Site, monkeypatch: pytest.MonkeyPatch):
    Path("cheap.py").write_text(CHEAP, encoding="utf-8")
    command = f"{shlex.quote(sys.executable)} cheap.py"
    entry = {"name": "cheap", "description": "Lets cheap books pass.", "tool_type": "filter", "package_name": "mine",
             "execution_mode": "sync", "capabilities": ["bargains"],
             "metadata": {"binding": {"command": command}}}  # fmt: skip
    Path("cheap.json").write_text(json.dumps(entry), encoding="utf-8")
    assert filled("tools", "add", "-f", "cheap.json").status == 0
    kept = json.loads(Path(".thebrain/config/tools.json").read_bytes())[-1]
    assert kept["metadata"] == entry["metadata"]
    plan = ("tools", "plan", "http_requests", "html_parsing", "bargains", "--write", "cheap.toml")
    rows = ("--rows", "article.book", "--select", "title=h3 a", "--select", "price=.price")
    look = ("--start", f"{site.url}/books/1", *rows)
    refused = filled(*plan, *look)
    assert refused.status == 5
    assert "list that command in TOOLCRIB_TOOL_COMMANDS, word for word" in one_sentence(refused, "brain")
    monkeypatch.setenv("TOOLCRIB_TOOL_COMMANDS", command)
    assert filled(*plan, *look).status == 0
    run = filled("pipeline", "run", "cheap.toml", "-o", "-")
    assert [json.loads(line)["title"] for line in run.out.splitlines()] == ["The Left Hand of Darkness"]
    called = filled("tools", "run", "cheap", "--arguments", '{"records": [{"price": "7"}], "below": 8}')
    assert called.json == {"records": [{"price": "7"}]}


def test_a_sample_is_called_by_its_name(filled: Cli):
    answer = filled("tools", "run", "beautifulsoup4", "--html", "<h1>x</h1>", "--selectors", '{"a": "h1"}')
    assert answer.json == {"records": [{"a": "x"}]}


def test_samples_of_a_release_before_are_replaced(cli: Cli):
    """They had no parameters and could not be called: nobody can be broken by those that they have now."""
    Path("old.json").write_text(
        json.dumps({"name": "httpx", "description": "x", "tool_type": "http_client"}), encoding="utf-8"
    )
    assert cli("tools", "add", "-f", "old.json").status == 0
    assert cli("tools", "add", "--samples").status == 0
    assert cli("tools", "show", "httpx").json["binding"]["python"] == "httpx"
