"""The Brain's command lines, as its design writes them, each as the program runs it, and one typed into it."""

import json
import shutil
from pathlib import Path

import pytest
from tests.surfaces.cli.conftest import Cli, one_sentence

SAMPLES = Path(__file__).parents[2] / "dialects/brain"


@pytest.fixture
def brain(cli: Cli, home: Path):
    for name in ("playwright.json", "beautifulsoup4.json"):
        shutil.copy(SAMPLES / name, home)
    return lambda line: cli(*line.split()[1:], program=line.split()[0])


def test_the_regression_lines(brain, shell: Cli, home: Path):
    added = brain("brain tools add -f playwright.json")
    assert (added.status, added.out, added.err) == (0, "Added tool 'playwright'.\n", "")
    assert brain("brain tools add -f beautifulsoup4.json").status == 0

    assert [tool["name"] for tool in shell("brain", "tools", "list").json] == ["beautifulsoup4", "playwright"]
    browsers = brain("brain tools list --type browser")
    assert [tool["name"] for tool in browsers.json] == ["playwright"]
    parsers = brain("brain tools list --capability html_parsing")
    assert [tool["name"] for tool in parsers.json] == ["beautifulsoup4"]

    unknown = brain("brain tools check-compat playwright scraperapi")
    assert unknown.status == 3
    assert "'scraperapi'" in one_sentence(unknown, "brain")
    service = {"name": "scraperapi", "description": "Fetches pages for you.", "tool_type": "anti_bot_service",
               "package_name": "scraperapi-sdk", "execution_mode": "sync", "capabilities": ["anti_cloudflare"],
               "required_config": ["SCRAPERAPI_KEY"]}  # fmt: skip
    (home / "scraperapi.json").write_text(json.dumps(service))
    assert brain("brain tools add -f scraperapi.json").status == 0
    verdict = brain("brain tools check-compat playwright scraperapi")
    assert (verdict.status, verdict.out.splitlines()[0]) == (0, "Compatible")

    missing = brain("brain tools remove requests")
    assert missing.status == 3
    assert one_sentence(missing, "brain") == "no tool is called 'requests'"
    assert brain("brain tools remove scraperapi").out == "Removed tool 'scraperapi'.\n"

    file = home / ".thebrain/config/tools.json"
    assert [entry["name"] for entry in json.loads(file.read_bytes())] == ["playwright", "beautifulsoup4"]


def test_the_list_is_the_metadata_and_nothing_else(cli: Cli):
    cli("tools", "add", "-f", str(SAMPLES / "playwright.json"), program="brain")
    listed = cli("tools", "list", program="brain").json
    assert listed == [{"incompatible_with": []} | json.loads((SAMPLES / "playwright.json").read_bytes())]


def test_the_samples_fit_the_file(cli: Cli):
    assert cli("tools", "add", "--samples", program="brain").status == 0
    names = {tool["name"] for tool in cli("tools", "list", program="brain").json}
    assert {"playwright", "selenium", "undetected-chromedriver", "requests", "httpx", "beautifulsoup4", "parsel",
            "cloudscraper", "scraperapi", "scrapy"} <= names  # fmt: skip
    no = cli("tools", "check-compat", "playwright", "selenium", program="brain")
    assert (no.status, no.out.splitlines()[0]) == (1, "Non compatible")
    assert cli("tools", "check-compat", "scrapy", "selenium", "--strict", program="brain").status == 1
    assert cli("tools", "search", "captcha", program="brain").status == 0
    removed = cli("tools", "remove", "selenium", program="brain")
    assert removed.status == 0


def test_what_the_file_cannot_hold_is_refused(cli: Cli, home: Path):
    definition = {"name": "add", "description": "Add.", "input_schema": {"type": "object", "properties": {"a": {}}}}
    (home / "add.json").write_text(json.dumps(definition))
    refused = cli("tools", "import", "add.json", program="brain")
    assert refused.status == 4
    assert "'parameters'" in one_sentence(refused, "brain")


def test_a_broken_file_is_reported_with_its_path_and_stays(cli: Cli, home: Path):
    file = home / ".thebrain/config/tools.json"
    file.parent.mkdir(parents=True)
    file.write_text("[{")
    broken = cli("tools", "add", "-f", str(SAMPLES / "playwright.json"), program="brain")
    assert broken.status == 6
    assert str(file) in one_sentence(broken, "brain")
    assert file.read_text() == "[{"
    file.write_text('[{"name": "x"}]')
    wrong = cli("tools", "list", program="brain")
    assert wrong.status == 4
    assert "'x'" in one_sentence(wrong, "brain")


def test_any_file_can_be_the_brains(cli: Cli, home: Path):
    store = f"brain:///{home}/elsewhere.json"
    cli("tools", "add", "-f", str(SAMPLES / "playwright.json"), "--store", store)
    assert [entry["name"] for entry in json.loads((home / "elsewhere.json").read_bytes())] == ["playwright"]
    assert cli("tools", "list", "--store", f"sqlite:///{home}/own.db", program="brain").json == []


def test_the_brains_file_is_a_store_like_any_other(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch):
    """Audit, backup and doctor are about the file that the tools are in."""
    file = home / ".thebrain/config/tools.json"
    assert cli("tools", "add", "-f", str(SAMPLES / "playwright.json"), program="brain").status == 0
    saved = cli("backup", "all.zip", program="brain").json
    assert (saved["tools"], saved["events"]) == (1, 2)
    checks = {check["name"]: check["detail"] for check in cli("doctor", program="brain").json}
    assert checks["store"] == f"brain:///{file} holds 1 tool"
    monkeypatch.setenv("TOOLCRIB_STORE", "brain:")
    assert cli("tools", "list").json == cli("tools", "list", program="brain").json


@pytest.mark.parametrize("store", ["", "brain:", "brain:///{home}/b.json"])
def test_a_policy_decides_on_the_brains_file_too(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, store: str):
    (home / "nobody.cedar").write_text("forbid(principal, action, resource);")
    monkeypatch.setenv("TOOLCRIB_POLICY", "cedar")
    monkeypatch.setenv("TOOLCRIB_POLICY_FILE", str(home / "nobody.cedar"))
    options = ["--store", store.format(home=str(home).lstrip("/"))] if store else []
    refused = cli("tools", "add", "-f", str(SAMPLES / "playwright.json"), *options)
    assert refused.status == 5, refused


def test_who_only_looks_leaves_no_audit_behind(brain, home: Path):
    assert brain("brain tools list").status == 0
    assert not list(home.rglob("*.audit.db"))
