"""``tools run``: plugins, folders and catalogued tools, typed arguments, approval, and the status of a failure."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.website import serve_site
from tests.surfaces.cli.conftest import BIN, Cli, one_sentence
from tests.surfaces.cli.test_program import terminal

from toolcrib.bootstrap import open_system

ROOT = Path(__file__).parents[3]

PLUGIN = '''
from toolcrib import SafetyLevel, ToolContext, tool

@tool
async def told(context: ToolContext):
    """Tell of it, and yield."""
    context.progress(0.5, "half \\x1b[2J way")
    yield 1
    context.progress(None, "nearly")
    yield 2

@tool
def prints() -> int:
    """Print."""
    print("printed")
    return 7

@tool
def picture() -> bytes:
    """Draw."""
    return b"\\x89PNG\\r\\n\\x1a\\n\\xff\\xff\\xff"

@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b

@tool
def joined(words: list[str], sign: str = "-", upper: bool = False) -> str:
    """Join words."""
    text = sign.join(words)
    return text.upper() if upper else text

@tool
def broken() -> None:
    """Break."""
    raise RuntimeError("it broke")

@tool(safety_level=SafetyLevel.DANGEROUS)
def wipe(folder: str) -> str:
    """Wipe a folder."""
    return f"wiped {folder}"

@tool(isolation="process", timeout_seconds=60)
def apart(asleep: bool) -> str:
    """Run in a process of its own."""
    return "asleep" if asleep else "awake"

@tool(isolation="process", timeout_seconds=0.5)
def endless() -> None:
    """Never end."""
    while True:
        pass
'''


@pytest.fixture
def plugins(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = home / "plugins"
    folder.mkdir()
    (folder / "demo.py").write_text(PLUGIN)
    monkeypatch.setenv("TOOLCRIB_PLUGINS_DIR", str(folder))
    return folder


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("add --a 2 --b 3", 5),
        ("add --a=2", 3),
        ('add --arguments {"a":40,"b":2}', 42),
        ('add --arguments {"a":40} --b 1', 41),
        ("joined --words a --words b --upper", "A-B"),
        ('joined --words ["x","y"] --sign +', "x+y"),
        ("apart --no-asleep", "awake"),
        ("picture", {"data": "iVBORw0KGgr///8=", "media_type": "image/png", "type": "image"}),
    ],
)  # fmt: skip
def test_a_tool_is_run_with_typed_arguments(cli: Cli, line: str, result: object):
    answer = cli("tools", "run", *line.split())
    assert (answer.status, answer.err) == (0, "")
    assert answer.json == result


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("line", "status", "complaint"),
    [
        ("add --a two", 4, "argument 'a' of tool 'add'"),
        ("add", 4, "'a'"),
        ("add --a 1 --c 2", 4, "'add' has no argument 'c'"),
        ("add --arguments [1]", 4, "--arguments must be a JSON object"),
        ("add --arguments {", 4, "--arguments is not JSON"),
        ("broken", 1, "tool 'broken' failed: RuntimeError: it broke"),
        ("wipe --folder /", 5, "'wipe' is 'dangerous'"),
        ("endless", 1, "passed its deadline of 0.5 s; it was stopped"),
        ("ad --a 1", 3, "did you mean 'add'"),
    ],
)
def test_what_goes_wrong_is_told_and_has_its_status(cli: Cli, line: str, status: int, complaint: str):
    answer = cli("tools", "run", *line.split())
    assert answer.status == status
    assert complaint in one_sentence(answer)
    assert answer.out == ""


@pytest.mark.usefixtures("plugins")
def test_what_a_tool_prints_is_not_in_the_answer(cli: Cli):
    answer = cli("tools", "run", "prints")
    assert (answer.status, answer.json, answer.err) == (0, 7, "printed\n")


@pytest.mark.usefixtures("plugins")
def test_the_whole_outcome_is_json_on_request(cli: Cli):
    done = cli("tools", "run", "add", "--a", "1", "--json")
    assert done.json["success"] is True
    assert done.json["data"] == 2
    failed = cli("tools", "run", "broken", "--json")
    assert failed.status == 1
    assert failed.json["error_code"] == "tool_failed"


@pytest.mark.usefixtures("plugins")
def test_a_dangerous_tool_runs_once_somebody_says_yes(cli: Cli):
    assert cli("tools", "run", "wipe", "--folder", "/tmp", "--yes").json == "wiped /tmp"
    command = (BIN / "toolcrib", "tools", "run", "wipe", "--folder", "/tmp")
    status, shown = terminal(*command, feed=b"y\n")
    assert status == 0
    assert "'wipe' is dangerous. Run it with" in shown
    assert "wiped /tmp" in shown
    status, shown = terminal(*command, feed=b"n\n")
    assert status == 5
    assert "wiped" not in shown.replace("Run it", "")


def test_a_thread_that_hangs_does_not_hold_up_the_program(shell: Cli, plugins: Path):
    hanging = "from time import sleep as nap\nfrom toolcrib import tool\n\n"
    hanging += "@tool(timeout_seconds=0.2)\ndef wait(seconds: float) -> None:\n    'Wait.'\n    nap(seconds)\n"
    (plugins / "hanging.py").write_text(hanging)
    answer = shell("toolcrib", "tools", "run", "wait", "--seconds", "3000")
    assert answer.status == 1
    assert "its thread is still running" in one_sentence(answer)


def test_a_broken_plugin_is_told_and_stops_nobody(cli: Cli, plugins: Path):
    (plugins / "bad.py").write_text("import nothing_of_that_name")
    answer = cli("tools", "run", "add", "--a", "1")
    assert answer.json == 2
    assert "warning: plugin" in one_sentence(answer)
    assert "bad.py" in answer.err


def test_a_catalogued_tool_runs_by_its_binding(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch):
    spec = {
        "name": "shout",
        "description": "Write in capitals.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "binding": {"python": "shouting:shout"},
    }
    (home / "shouting.py").write_text(
        "from toolcrib import tool\n\n@tool\ndef shout(text: str) -> str:\n    'Shout.'\n    return text.upper()\n"
    )
    (home / "shout.json").write_text(json.dumps(spec))
    monkeypatch.syspath_prepend(str(home))
    assert cli("tools", "add", "-f", "shout.json").status == 0
    refused = cli("tools", "run", "shout", "--text", "hey")
    assert refused.status != 0
    assert "shouting" in one_sentence(refused)
    monkeypatch.setenv("TOOLCRIB_PYTHON_TOOLS", "shouting:shout")
    assert cli("tools", "run", "shout", "--text", "hey").json == "HEY"


def add_described(cli: Cli) -> None:
    """A tool that says what it is and not how it runs."""
    Path("told-of.json").write_text('{"name": "told-of", "description": "Only told of."}', encoding="utf-8")
    assert cli("tools", "add", "-f", "told-of.json").status == 0


def test_a_tool_that_is_only_described_says_so(cli: Cli):
    add_described(cli)
    answer = cli("tools", "run", "told-of")
    assert answer.status == 4
    assert "'told-of'" in one_sentence(answer)
    cli("tools", "add", "--samples", program="brain")
    retired = cli("tools", "run", "cloudscraper", "--url", "http://127.0.0.1", program="brain")
    assert retired.status == 4
    assert "use 'curl_cffi'" in one_sentence(retired, "brain")


def test_an_installed_plugin_is_found(tmp_path: Path):
    """A package with an entry point is installed and its tools run, all in processes of their own."""
    site = tmp_path / "site"
    options = "--quiet --no-deps --no-build-isolation --disable-pip-version-check --no-index --target"
    install = [sys.executable, "-m", "pip", "install", *options.split(), str(site), str(ROOT / "examples/plugin")]
    subprocess.run(install, check=True, timeout=100)
    environment = os.environ | {"PYTHONPATH": str(site)}

    def run(*arguments: str) -> object:
        command = [str(BIN / "toolcrib"), "tools", "run", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=60)
        return json.loads(done.stdout)

    rolled = run("roll-dice", "--sides", "6", "--count", "3")
    assert isinstance(rolled, list)
    assert len(rolled) == 3
    assert all(1 <= number <= 6 for number in rolled)
    assert run("reverse", "--text", "abc") == "cba"
    assert run("shout", "--text", "hi", "--marks", "2") == "HI!!"


@pytest.mark.parametrize("kept", [False, True])
def test_browser_tools_reach_public_addresses_only(
    cli: Cli, chromium_path: str, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Kept in the catalogue or not."""
    monkeypatch.setenv("TOOLCRIB_CHROMIUM", chromium_path)
    if kept:
        assert cli("tools", "add", "--samples").status == 0
    with serve_site() as site:
        refused = cli("tools", "run", "goto", "--url", site.url)
        assert refused.status == 1 and "is not a public address" in one_sentence(refused)
        assert not site.hits
        monkeypatch.setenv("TOOLCRIB_ALLOWED_ADDRESSES", "127.0.0.1")
        assert cli("tools", "run", "goto", "--url", site.url).json["status"] == 200


@pytest.mark.usefixtures("plugins")
def test_every_run_is_on_record(cli: Cli):
    add_described(cli)
    cli("tools", "run", "add", "--a", "1")
    cli("tools", "run", "nobody", "--whatever", "1")
    cli("tools", "run", "told-of")
    cli("tools", "run", "wipe", "--folder", "/")
    for wrong in (["--nope", "1"], ["--a", "1", "--a", "2"], ["--arguments", "{"]):
        assert cli("tools", "run", "add", *wrong).status == 4
    with open_system() as system:
        events = system.audit.events(action="run")
    assert [(event.tool, event.outcome, event.detail) for event in reversed(events)] == [
        ("add", "attempt", ""),
        ("add", "done", ""),
        ("nobody", "attempt", ""),
        ("nobody", "failed", "tool_not_found"),
        ("told-of", "attempt", ""),
        ("told-of", "failed", "invalid_tool"),
        ("wipe", "attempt", ""),
        ("wipe", "refused", "safety_level: approval_required"),
        *[("add", "attempt", ""), ("add", "failed", "invalid_arguments")] * 3,
    ]


@pytest.mark.usefixtures("plugins")
def test_a_tool_that_is_not_there_has_no_arguments_to_complain_about(cli: Cli):
    answer = cli("tools", "run", "ad", "--no-such", "option")
    assert answer.status == 3
    assert "no tool is called 'ad'; did you mean 'add'?" in one_sentence(answer)


@pytest.mark.usefixtures("plugins")
def test_a_terminal_shows_how_far_a_tool_is_and_a_script_does_not(cli: Cli):
    status, shown = terminal(BIN / "toolcrib", "tools", "run", "told")
    assert status == 0
    lines = [line.strip() for line in shown.split("\r")]
    for told in ("50% half \N{REPLACEMENT CHARACTER}[2J way", "nearly  1 item", "nearly  2 items"):
        assert told in lines
    assert json.loads(shown[shown.rindex("[\r\n") :]) == [1, 2]
    quiet = cli("tools", "run", "told")
    assert (quiet.json, quiet.err) == ([1, 2], "")
