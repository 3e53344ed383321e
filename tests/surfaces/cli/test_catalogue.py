"""``tools add | list | show | remove | search | export | import`` and the exit status of each."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.cli.conftest import Cli, one_sentence

ADD: dict[str, Any] = {
    "name": "add",
    "description": "Add two numbers. It is exact.",
    "tool_type": "math",
    "capabilities": ["adding"],
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}


def written(name: str, value: object) -> str:
    Path(name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return name


def test_a_tool_is_added_listed_shown_and_removed(cli: Cli):
    added = cli("tools", "add", "-f", written("add.json", ADD))
    assert (added.status, added.out) == (0, "Added tool 'add'.\n")
    assert [tool["name"] for tool in cli("tools", "list").json] == ["add"]
    shown = cli("tools", "show", "add").json
    assert shown["parameters"] == ADD["parameters"]
    assert cli("tools", "remove", "add").out == "Removed tool 'add'.\n"
    assert cli("tools", "list").json == []


def test_a_purge_takes_the_history_too(cli: Cli):
    for text in ("One.", "Two."):
        cli("tools", "add", "-f", written("add.json", ADD | {"description": text}))
    assert cli("tools", "remove", "add").status == 0
    purged = cli("tools", "remove", "add", "--purge")
    assert (purged.status, purged.out) == (0, "Purged tool 'add' and its history.\n")
    gone = cli("tools", "remove", "add", "--purge")
    assert gone.status == 3
    assert "'add'" in one_sentence(gone)
    cli("tools", "add", "-f", "add.json")
    assert cli("tools", "remove", "add", "--purge", "--json").json == {"removed": "add", "purged": True}


def test_a_rule_that_nobody_serves_is_told_or_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    file = written("add.json", ADD | {"policy_rule_uri": "policies://none"})
    told = cli("tools", "add", "-f", file)
    assert (told.status, told.out) == (0, "Added tool 'add'.\n")
    assert "'add' names a policy rule that nobody serves: 'policies://none'" in one_sentence(told)
    monkeypatch.setenv("TOOLCRIB_UNKNOWN_POLICY_RULES", "refuse")
    changed = written("other.json", ADD | {"name": "other", "validation_policy_rule_uri": "policies://none"})
    refused = cli("tools", "add", "-f", changed)
    assert refused.status == 4
    assert "TOOLCRIB_UNKNOWN_POLICY_RULES=warn" in one_sentence(refused)
    monkeypatch.setenv("TOOLCRIB_UNKNOWN_POLICY_RULES", "ignore")
    assert cli("tools", "add", "-f", changed).err == ""


def test_adding_again_replaces_unless_told_not_to(cli: Cli):
    cli("tools", "add", "-f", written("add.json", ADD))
    again = cli("tools", "add", "-f", written("add.json", ADD | {"description": "Add."}))
    assert again.out == "Replaced tool 'add'.\n"
    assert cli("tools", "show", "add").json["description"] == "Add."
    refused = cli("tools", "add", "--no-replace", "-f", "add.json")
    assert refused.status == 4
    assert "'add' exists already" in one_sentence(refused)


def test_a_breaking_replacement_is_refused_unless_forced(cli: Cli):
    cli("tools", "add", "-f", written("add.json", ADD))
    breaking = ADD | {"parameters": {"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]}}
    refused = cli("tools", "add", "-f", written("add.json", breaking))
    assert refused.status == 4
    assert "would break its callers" in one_sentence(refused)
    assert cli("tools", "add", "--force", "-f", "add.json").status == 0


def test_a_list_of_tools_is_added_whole_or_not_at_all(cli: Cli):
    file = written("both.json", [ADD, {"name": "bad name", "description": "No."}])
    refused = cli("tools", "add", "-f", file)
    assert refused.status == 4
    sentence = one_sentence(refused)
    assert "both.json: entry 2" in sentence
    assert "'bad name'" in sentence
    assert cli("tools", "list").json == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "wrong.json: the file is not JSON"),
        ("[1]", "wrong.json: entry 1: a tool is a JSON object"),
        ('{"name": "x"}', "wrong.json: tool 'x' has no 'description'"),
        ('{"name": "x", "description": "x", "colour": "red"}', "'colour' that does not exist"),
        ("\xff", "wrong.json: the file is not UTF-8 text"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(cli: Cli, content: str, complaint: str):
    Path("wrong.json").write_bytes(content.encode("latin-1"))
    refused = cli("tools", "add", "-f", "wrong.json")
    assert refused.status == 4
    assert complaint in one_sentence(refused)


def test_a_file_that_is_not_there_is_named(cli: Cli):
    refused = cli("tools", "add", "-f", "missing.json")
    assert refused.status == 4
    assert "missing.json: cannot be read: no such file" in one_sentence(refused)


@pytest.mark.parametrize("command", [["show", "ghost"], ["remove", "ghost"], ["check-compat", "ghost", "other"]])
def test_what_is_not_there_is_status_3(cli: Cli, command: list[str]):
    cli("tools", "add", "-f", written("add.json", ADD | {"name": "ghosts"}))
    missing = cli("tools", *command)
    assert "did you mean 'ghosts'" in one_sentence(missing)
    assert missing.status == 3
    assert "'ghost'" in one_sentence(missing)


@pytest.mark.parametrize(
    "command",
    [["tools", "add"], ["tools", "nonsense"], ["tools", "show"], ["nonsense"], ["tools", "list", "--nonsense"],
     ["tools", "check-compat", "alone"], ["tools", "search", "x", "--limit", "zero"]],
)  # fmt: skip
def test_wrong_usage_is_status_2_and_one_sentence(cli: Cli, command: list[str]):
    refused = cli(*command)
    assert refused.status == 2
    assert "--help" in one_sentence(refused)


def test_a_store_that_does_not_exist_is_told(cli: Cli):
    refused = cli("tools", "list", "--store", "ftp://somewhere")
    assert refused.status == 4
    assert "'ftp://somewhere'" in one_sentence(refused)


def test_a_store_that_fails_is_status_6(cli: Cli, home: Path):
    (home / "broken.db").write_bytes(b"this is not a database, however long one reads in it" * 100)
    failed = cli("tools", "list", "--store", f"sqlite:///{home}/broken.db")
    assert failed.status == 6
    assert "broken.db" in one_sentence(failed)


def test_the_store_can_be_named_before_or_after_the_command(cli: Cli, home: Path):
    store = f"sqlite:///{home}/other.db"
    cli("--store", store, "tools", "add", "-f", written("add.json", ADD))
    assert len(cli("tools", "list", "--store", store).json) == 1
    assert cli("tools", "list").json == []


def test_a_list_has_the_tools_of_a_tag_and_so_many(cli: Cli):
    tools = [{"name": f"t{number}", "description": "d", "tags": ["all", f"n{number}"]} for number in range(4)]
    cli("tools", "add", "-f", written("tools.json", tools))

    def names(*options: str) -> list[str]:
        return [tool["name"] for tool in cli("tools", "list", *options).json]

    assert names("--tag", "all") == ["t0", "t1", "t2", "t3"]
    assert names("--tag", "n2") == ["t2"]
    assert names("--tag", "all", "--tag", "n3") == ["t3"]
    assert names("--tag", "n2", "--tag", "n3") == []
    assert names("--limit", "2") == ["t0", "t1"]
    assert names("--tag", "all", "--limit", "1") == ["t0"]
    assert names("--limit", "9") == names()
    assert cli("tools", "list", "--limit", "0").status == 2


PLUGIN = """
from toolcrib import tool

@tool(tags=["here"])
def {name}() -> int:
    "A plugin's tool."
    return 1
"""


@pytest.mark.parametrize("program", ["toolcrib", "brain"])
def test_plugins_are_listed_or_told_of(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, program: str):
    assert cli("tools", "list", program=program).err == ""
    for name in ("one", "two"):
        (home / "plugins").mkdir(exist_ok=True)
        (home / "plugins" / f"{name}.py").write_text(PLUGIN.format(name=name))
    monkeypatch.setenv("TOOLCRIB_PLUGINS_DIR", "plugins")
    listed = cli("tools", "list", program=program)
    assert listed.json == []
    assert one_sentence(listed, program) == "note: plugins bring tools too; see them with: tools list --plugins"
    plugins = cli("tools", "list", "--plugins", program=program)
    assert [tool["name"] for tool in plugins.json] == ["one", "two"]
    assert plugins.err == ""
    for options, names in (
        (("--limit", "1"), ["one"]), (("--tag", "here"), ["one", "two"]), (("--tag", "no"), []),
    ):  # fmt: skip
        assert [tool["name"] for tool in cli("tools", "list", "--plugins", *options, program=program).json] == names


@pytest.mark.parametrize(
    "command", [[], ["tools"], ["tokens"], ["audit"], ["keys"], ["bundles"], ["policy"], ["pipeline"]], ids=" ".join
)
@pytest.mark.parametrize("program", ["toolcrib", "brain"])
def test_a_group_alone_shows_its_help(cli: Cli, program: str, command: list[str]):
    alone = cli(*command, program=program)
    assert (alone.status, alone.err) == (0, "")
    assert alone.out.strip() == cli(*command, "--help", program=program).out.strip()
    assert "Commands" in alone.out


def test_the_help_of_serve_shows_what_counts(cli: Cli):
    shown = " ".join(cli("serve", "--help").out.replace("│", " ").split())
    for default in ("[default: 127.0.0.1]", "[default: 8000]", "[default: 1]", "by default a SQLite file in data_dir"):
        assert default in shown
    assert "[default: 0]" not in shown


@pytest.mark.parametrize("option", ["--port", "--workers"])
def test_serve_takes_no_zero_for_the_default(cli: Cli, option: str):
    answer = cli("serve", option, "0")
    assert answer.status == 2 and f"invalid value for '{option}'" in one_sentence(answer)


def test_a_relative_store_is_here_and_makes_no_folder(cli: Cli, home: Path):
    cli("tools", "add", "-f", written("add.json", ADD), "--store", "sqlite:///relative.db")
    assert (home / "relative.db").is_file()
    assert len(cli("tools", "list", "--store", f"sqlite:///{home}/relative.db").json) == 1
    refused = cli("tools", "list", "--store", "json:///missing/tools.json")
    assert refused.status == 4
    assert f"the folder '{home / 'missing'}'" in one_sentence(refused)
    assert not (home / "missing").exists()


def test_what_is_not_there_has_its_status_in_the_service_commands_too(cli: Cli):
    revoked = cli("tokens", "revoke", "nope")
    assert revoked.status == 3
    assert "there is no token 'nope'" in one_sentence(revoked)
    restored = cli("restore", "nofile")
    assert restored.status == 4
    assert "'nofile' cannot be read: No such file" in one_sentence(restored)


def test_a_backup_does_not_write_over_another_unless_told(cli: Cli):
    cli("tools", "add", "-f", written("add.json", ADD))
    Path("saved.zip").write_text("the only good one", encoding="utf-8")
    refused = cli("backup", "saved.zip")
    assert refused.status == 5
    assert "'saved.zip' is there already" in one_sentence(refused)
    assert Path("saved.zip").read_text(encoding="utf-8") == "the only good one"
    assert cli("backup", "saved.zip", "--replace").json["tools"] == 1
    assert cli("backup", "saved.zip", "--force").json["tools"] == 1
    other = ("--store", "sqlite:///other.db")
    assert cli("restore", "saved.zip", *other).status == 0
    assert len(cli("tools", "list", *other).json) == 1


def test_lists_can_be_filtered(cli: Cli):
    cli("tools", "add", "--samples")
    names = [tool["name"] for tool in cli("tools", "list", "--type", "browser").json]
    assert "playwright" in names
    assert "requests" not in names
    parsers = [tool["name"] for tool in cli("tools", "list", "--capability", "html_parsing").json]
    assert "beautifulsoup4" in parsers
    assert cli("tools", "list", "--type", "browser", "--capability", "teleporting").json == []


def test_search_finds_by_words(cli: Cli):
    cli("tools", "add", "--samples")
    hits = cli("tools", "search", "html parser", "--limit", "3").json
    assert 0 < len(hits) <= 3
    assert all(0 <= hit["score"] <= 1 and hit["reason"] for hit in hits)


def test_stacks_are_judged(cli: Cli):
    cli("tools", "add", "--samples")
    yes = cli("tools", "check-compat", "playwright", "beautifulsoup4")
    assert (yes.status, yes.out.splitlines()[0]) == (0, "Compatible")
    assert "accepts" in yes.out.splitlines()[1]
    no = cli("tools", "check-compat", "playwright", "selenium", "beautifulsoup4")
    assert (no.status, no.out.splitlines()[0]) == (1, "Non compatible")
    assert "refuses" in no.out.splitlines()[1]
    assert no.err == ""
    report = cli("tools", "check-compat", "playwright", "selenium", "--json")
    assert report.status == 1
    assert report.json["compatible"] is False


def test_compatible_tools_are_found(cli: Cli):
    cli("tools", "add", "--samples")
    found = cli("tools", "compatible", "playwright", "--type", "parser").json
    assert {tool["tool_type"] for tool in found} == {"parser"}
    assert cli("tools", "compatible", "ghost").status == 3


def test_plans_are_made(cli: Cli):
    cli("tools", "add", "--samples")
    found = cli("tools", "plan", "javascript_rendering", "html_parsing")
    assert found.status == 0
    assert len(found.json["stacks"][0]["tools"]) == 2
    missed = cli("tools", "plan", "html_parsing", "time_travel")
    assert missed.status == 1
    assert missed.json["nearest"]["missing"] == ["time_travel"]


@pytest.mark.parametrize("format", ["openai", "anthropic", "mcp"])
def test_an_export_can_be_imported_again(cli: Cli, format: str):
    cli("tools", "add", "-f", written("add.json", ADD))
    written("exported.json", cli("tools", "export", "--format", format).out)
    imported = cli("tools", "import", "exported.json", "--store", f"sqlite:///{Path.cwd()}/copy.db")
    assert imported.out == "Imported 1 tool: 'add'.\n"
    copy = cli("tools", "show", "add", "--store", f"sqlite:///{Path.cwd()}/copy.db").json
    assert copy["parameters"]["properties"] == ADD["parameters"]["properties"]


def test_the_own_format_keeps_everything(cli: Cli):
    cli("tools", "add", "--samples")
    everything = cli("tools", "export").json
    written("all.json", everything)
    copy = f"sqlite:///{Path.cwd()}/copy.db"
    assert cli("tools", "import", "all.json", "--store", copy).status == 0
    assert cli("tools", "export", "--store", copy).json == everything
    again = cli("tools", "import", "all.json", "--store", copy)
    assert again.status == 4
    assert "exists already" in one_sentence(again)


def test_json_lines_are_read_and_a_bad_line_is_named(cli: Cli):
    lines = [json.dumps(ADD | {"name": f"add-{number}"}) for number in range(3)]
    assert cli("tools", "import", written("tools.jsonl", "\n".join(lines))).status == 0
    refused = cli("tools", "import", written("tools.jsonl", "\n".join([*lines, "{oops"])))
    assert refused.status == 4
    assert "tools.jsonl: line 4 is not JSON" in one_sentence(refused)


def test_a_prompt_is_text_and_an_unknown_format_is_named(cli: Cli):
    cli("tools", "add", "-f", written("add.json", ADD))
    assert "Add two numbers" in cli("tools", "export", "--format", "prompt").out
    refused = cli("tools", "export", "--format", "cobol")
    assert refused.status == 4
    assert "'cobol'" in one_sentence(refused)


def test_the_configuration_says_where_it_comes_from_and_hides_secrets(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOOLCRIB_PORT", "9999")
    monkeypatch.setenv("TOOLCRIB_POLICY_WEBHOOK_SECRET", "hush")
    answer = cli("config")
    rows = {row["name"]: row for row in answer.json}
    assert rows["port"] == {"name": "port", "value": 9999, "source": "TOOLCRIB_PORT"}
    assert "hush" not in answer.out
    assert rows["host"]["source"] == "default"
    monkeypatch.setenv("TOOLCRIB_PROT", "1")
    refused = cli("config")
    assert refused.status == 4
    assert "'prot' (TOOLCRIB_PROT); did you mean 'port'?" in one_sentence(refused)


def test_a_tool_can_come_from_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(ADD)))
    assert cli("tools", "add", "-f", "-").out == "Added tool 'add'.\n"


SHAPES: dict[str, Any] = {
    "toolsdb": {
        "tool_id": "shaped",
        "tool_metadata": {},
        "tool_search_description": "Shaped elsewhere.",
        "tool_tags": ["x"],
        "tool_type": "demo",
        "tool_man_page_doc": "",
        "tool_api_spec": {"input": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "tool_custom_actions_dsl_map": {},
        "default_tool_usage_credentials": {},
        "tool_execution_mode": "local_code",
        "tool_policy_rule_uri": "",
        "tool_validation_policy_rule_uri": "",
        "tool_validation_mode": "",
        "tool_source_code_link": "",
        "tool_service_url": "",
        "tool_system_function_rpc_id": "",
    },
    "mcp": {"tools": [{"name": "shaped", "description": "Shaped elsewhere.", "inputSchema": {"type": "object"}}]},
    "gemini": [{"functionDeclarations": [{"name": "shaped", "description": "Shaped elsewhere."}]}],
    "openai": [{"type": "function", "function": {"name": "shaped", "description": "Shaped elsewhere."}}],
    "anthropic": {"name": "shaped", "description": "Shaped elsewhere.", "input_schema": {"type": "object"}},
    "toolcrib": {"name": "shaped", "description": "Shaped elsewhere.", "tags": ["x"]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_recognised(cli: Cli, shape: str):
    imported = cli("tools", "import", written("shaped.json", SHAPES[shape]))
    assert (imported.status, imported.out) == (0, "Imported 1 tool: 'shaped'.\n"), imported.err
    assert cli("tools", "show", "shaped").json["description"] == "Shaped elsewhere."


@pytest.mark.parametrize("command", [("add", "-f"), ("import", "--replace")])
def test_a_tool_that_leads_elsewhere_loses_its_credentials_and_says_so(cli: Cli, command: tuple[str, str]):
    here, there = {"binding": {"service_url": "https://a.example"}}, {"binding": {"service_url": "https://b.example"}}
    cli("tools", "add", "-f", written("add.json", ADD | here | {"credentials": {"api_key": "hunter2"}}))
    masked = cli("tools", "show", "add").json
    refused = cli("tools", *command, written("masked.json", [masked | there]))
    assert refused.status == 4
    assert "the credential 'api_key' of 'add' was given for the service 'https://a.example/'" in one_sentence(refused)
    moved = cli("tools", *command, written("there.json", [ADD | there]))
    assert moved.status == 0
    assert "note: 'add' has its credentials no more ('api_key'); give them again" in one_sentence(moved)
