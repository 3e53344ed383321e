"""``pipeline check | run`` and ``browser``, on a small web site of the test's own."""

import io
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.surfaces.cli.conftest import BIN, Cli, one_sentence
from tests.surfaces.cli.test_program import terminal

from toolcrib.bootstrap import open_system
from toolcrib.settings import load_settings
from toolcrib.toolsets.scraping import scraping_specs


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "site"
    folder.mkdir()
    rows = "".join(f"<li class=book><b>Book {number}</b></li>" for number in range(3))
    (folder / "index.html").write_text(f"<title>Books</title><ul>{rows}</ul><a class=next href=more.html>more</a>")
    (folder / "more.html").write_text("<title>More</title><ul><li class=book><b>Book 3</b></li></ul>")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def keep(*names: str) -> None:
    """Put samples into the catalogue, which pipelines consult."""
    with open_system(load_settings()) as system:
        known = scraping_specs()
        system.catalogue.publish_many([known[name] for name in dict.fromkeys(names) if name in known], replace=True)


def pipeline(site: str, *steps: str, **more: object) -> str:
    keep(*steps)
    parser = {"rows": "li.book", "selectors": {"title": "b"}, "follow": "a.next@href"}
    written = [{"tool": step, "config": parser if step == "parsel" else {}} for step in steps]
    Path("books.json").write_text(
        json.dumps({"name": "books", "start": [site], "steps": written, **more}), encoding="utf-8"
    )
    return "books.json"


def test_a_pipeline_is_checked(cli: Cli, site: str):
    good = cli("pipeline", "check", pipeline(site, "httpx", "parsel"))
    assert good.status == 0
    assert good.json["ok"] is True
    bad = cli("pipeline", "check", pipeline(site, "parsel", "httpx"))
    assert bad.status == 1
    assert bad.json["problems"]
    unknown = cli("pipeline", "check", pipeline(site, "httpx", "parcel"))
    assert unknown.status == 3
    assert "'parcel'; did you mean 'parsel'" in one_sentence(unknown)
    Path("broken.json").write_text("{", encoding="utf-8")
    broken = cli("pipeline", "check", "broken.json")
    assert broken.status == 4
    assert "broken.json" in one_sentence(broken)


def test_what_check_compat_refuses_a_pipeline_is_refused(cli: Cli, site: str):
    Path("tools.json").write_text(
        json.dumps(
            [
                {"name": "httpx", "description": "x", "tool_type": "http_client"},
                {"name": "parsel", "description": "x", "tool_type": "parser"},
            ]
        ),
        encoding="utf-8",
    )
    file = pipeline(site, "httpx", "parsel")
    store = ("--store", f"json:///{Path('kept.json').absolute()}")
    assert cli("tools", "add", "-f", "tools.json", *store).status == 0
    assert cli("tools", "check-compat", "httpx", "parsel", *store).status == 0
    assert cli("pipeline", "check", file, *store).status == 0
    refusing = {"name": "httpx", "description": "x", "tool_type": "http_client", "incompatible_with": ["parsel"]}
    Path("tools.json").write_text(json.dumps(refusing), encoding="utf-8")
    assert cli("tools", "add", "-f", "tools.json", "--replace", *store).status == 0
    refused = cli("tools", "check-compat", "httpx", "parsel", *store)
    assert refused.status == 1
    answer, reason = refused.out.splitlines()
    assert answer == "Non compatible"
    checked = cli("pipeline", "check", file, *store)
    assert checked.status == 1
    assert reason in checked.json["problems"][0]
    ran = cli("pipeline", "run", file, *store)
    assert ran.status == 1
    assert reason in one_sentence(ran)
    assert cli("pipeline", "check", file).status == 0


def test_a_pipeline_is_run_and_its_rows_come_out(cli: Cli, site: str):
    answer = cli("pipeline", "run", pipeline(site, "httpx", "parsel"), "-o", "rows.jsonl")
    assert (answer.status, answer.err) == (0, "")
    assert answer.json["done"] == 2
    assert answer.json["items"] == 4
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(row["title"] for row in rows) == ["Book 0", "Book 1", "Book 2", "Book 3"]
    piped = cli("pipeline", "run", "books.json", "-o", "-")
    assert len([json.loads(line) for line in piped.out.splitlines()]) == 4


def test_the_policy_and_the_audit_know_of_every_step(cli: Cli, site: str, monkeypatch: pytest.MonkeyPatch):
    file = pipeline(site, "httpx", "parsel")
    assert cli("pipeline", "run", file).status == 0
    Path("rules.cedar").write_text(
        'permit(principal, action, resource);forbid(principal, action == Action::"run", resource == Tool::"parsel");',
        encoding="utf-8",
    )
    monkeypatch.setenv("TOOLCRIB_POLICY", "cedar")
    monkeypatch.setenv("TOOLCRIB_POLICY_FILE", "rules.cedar")
    refused = cli("pipeline", "run", file)
    assert refused.status == 5
    assert "run 'parsel'" in one_sentence(refused)
    with open_system(load_settings()) as system:
        assert system.audit is not None
        outcomes = {(event.tool, event.outcome) for event in system.audit.events(action="run")}
    tools, ends = ("httpx", "parsel"), ("attempt", "done", "refused")
    assert outcomes == {(tool, outcome) for tool in tools for outcome in ends}


def test_a_request_that_fails_is_status_1(cli: Cli, site: str):
    file = pipeline(site, "httpx", "parsel")
    answer = cli("pipeline", "run", file, "--start", f"{site}missing.html")
    assert answer.status == 1
    assert "missing.html" in one_sentence(answer)
    assert answer.json["failed"] == 1


def test_a_selector_that_matches_nothing_is_told(cli: Cli, site: str):
    file = pipeline(site, "httpx", "parsel")
    Path(file).write_text(Path(file).read_text(encoding="utf-8").replace("li.book", "li.bok"), encoding="utf-8")
    answer = cli("pipeline", "run", file)
    assert answer.status == 0
    assert "step 'parsel': the selector 'li.bok' of 'rows' matched nothing on any of 2 pages" in one_sentence(answer)
    assert answer.json["unmatched"] == [
        {"tool": "parsel", "setting": "rows", "selector": "li.bok", "pages": 2, "of": 2}
    ]


def test_what_robots_txt_refuses_is_told_by_its_rule(cli: Cli, site: str, tmp_path: Path):
    (tmp_path / "site/robots.txt").write_text("User-agent: *\nDisallow: /more.html\n", encoding="utf-8")
    answer = cli("pipeline", "run", pipeline(site, "httpx", "parsel"))
    assert answer.status == 1
    assert "says 'Disallow: /more.html' to 'Toolcrib'" in one_sentence(answer)
    assert (answer.json["done"], answer.json["failures"][0]["kind"]) == (1, "robots")
    assert cli("pipeline", "run", pipeline(site, "httpx", "parsel", obey_robots=False)).status == 0


def test_what_the_operator_denies_a_pipeline_does_not_reach(cli: Cli, site: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOOLCRIB_DENIED_ADDRESSES", "127.0.0.0/8")
    by_name = site.replace("127.0.0.1", "localhost")
    answer = cli("pipeline", "run", pipeline(site, "httpx", "parsel"), "--start", site, "--start", by_name)
    assert answer.status == 1
    assert (answer.json["done"], answer.json["failed"]) == (0, 2)
    assert answer.err.count("is denied by the rule '127.0.0.0/8'") == 2


def test_a_terminal_gets_a_summary(site: str):
    status, shown = terminal(BIN / "toolcrib", "pipeline", "run", pipeline(site, "httpx", "parsel"))
    assert status == 0
    assert "finished: 2 requests done, 0 failed" in shown
    assert "parsel" in shown


def test_a_browser_is_driven_line_by_line(cli: Cli, site: str, chromium_path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOOLCRIB_CHROMIUM", chromium_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("extract_text\nhelp goto\n"))
    answer = cli("browser", site)
    assert (answer.status, answer.err) == (0, "")
    assert '"title": "Books"' in answer.out
    assert "Book 1" in answer.out
    assert "--url string (required)" in answer.out
    monkeypatch.setattr("sys.stdin", io.StringIO("goto --url\nquit\nextract_text\n"))
    wrong = cli("browser")
    assert wrong.status == 1
    assert "argument --url of 'goto' needs a value" in one_sentence(wrong)


def test_the_settings_file_names_the_browser(cli: Cli, site: str, home: Path, monkeypatch: pytest.MonkeyPatch):
    """For a pipeline, a session, and a browser tool that is kept or not."""
    (home / "toolcrib.toml").write_text('chromium = "/nowhere/chromium"')
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(home))
    monkeypatch.delenv("TOOLCRIB_CHROMIUM", raising=False)
    told = "the browser '/nowhere/chromium' is not installed"
    assert told in cli("pipeline", "check", pipeline(site, "playwright", "parsel")).out
    assert told in cli("browser").err
    assert told in cli("tools", "run", "goto", "--url", site).err
    assert cli("tools", "add", "--samples").status == 0
    assert told in cli("tools", "run", "goto", "--url", site).err


def test_what_the_operator_denies_the_browser_does_not_reach(
    cli: Cli, site: str, chromium_path: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOOLCRIB_CHROMIUM", chromium_path)
    monkeypatch.setenv("TOOLCRIB_DENIED_ADDRESSES", "127.0.0.0/8")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"goto --url {site.replace('127.0.0.1', 'localhost')}\n"))
    answer = cli("browser", site)
    assert answer.status == 1
    assert answer.err.count("is denied by the rule '127.0.0.0/8'") == 2
    assert "Books" not in answer.out


def test_a_browser_tool_runs_by_name(cli: Cli, site: str, chromium_path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOOLCRIB_CHROMIUM", chromium_path)
    monkeypatch.setenv("TOOLCRIB_ALLOWED_ADDRESSES", "127.0.0.1")
    assert cli("tools", "run", "goto", "--url", site).json["title"] == "Books"
