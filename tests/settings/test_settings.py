"""Settings: variables over the file over the defaults, every value with its source, no secret shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolcrib.core.errors import SettingsError
from toolcrib.core.json import MASK
from toolcrib.settings import Secrets, Settings, describe, load_settings


def load(tmp_path: Path, toml: str = "", **environ: str) -> Settings:
    (tmp_path / "here").mkdir(exist_ok=True)
    if toml:
        (tmp_path / "here/toolcrib.toml").write_text(toml)
    return load_settings({"HOME": str(tmp_path), **environ}, tmp_path / "here")


def source_of(settings: Settings, name: str) -> str:
    return {found: source for found, _, source in settings.in_force()}[name]


def test_a_variable_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    settings = load(tmp_path, 'port = 1\nhost = "h"\nrate = 2.5', TOOLCRIB_PORT="2")
    assert (settings.port, settings.host, settings.rate, settings.burst) == (2, "h", 2.5, 0.0)
    assert source_of(settings, "port") == "TOOLCRIB_PORT"
    assert source_of(settings, "host") == str(tmp_path / "here/toolcrib.toml")
    assert source_of(settings, "burst") == "default"


def test_an_option_wins_over_everything(tmp_path: Path) -> None:
    settings = load(tmp_path, TOOLCRIB_PORT="2").with_changes("--port", port=3, host=None)
    assert (settings.port, settings.host) == (3, "127.0.0.1")
    assert source_of(settings, "port") == "--port"


def test_a_table_is_a_prefix(tmp_path: Path) -> None:
    settings = load(tmp_path, '[jwt]\nissuer = "i"\nalgorithms = ["ES256"]\n[policy.webhook]\nopen = true')
    assert (settings.jwt_issuer, settings.jwt_algorithms, settings.policy_webhook_open) == ("i", ("ES256",), True)


def test_the_file_is_looked_for_in_order(tmp_path: Path) -> None:
    user = tmp_path / ".config/toolcrib/toolcrib.toml"
    user.parent.mkdir(parents=True)
    user.write_text("port = 5")
    assert load(tmp_path).port == 5
    named = tmp_path / "named.toml"
    named.write_text("port = 6")
    assert load(tmp_path, "port = 4", TOOLCRIB_CONFIG=str(named)).port == 6
    assert load(tmp_path, "port = 4").port == 4
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        load(tmp_path, TOOLCRIB_CONFIG=str(tmp_path / "missing.toml"))


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"TOOLCRIB_STOER": "memory:"}, r"'stoer' \(TOOLCRIB_STOER\); did you mean 'store'"),
        ({"TOOLCRIB_ENVIRON": "{}"}, r"'environ' \(TOOLCRIB_ENVIRON\)"),
        ({"TOOLCRIB_PORT": "http"}, r"'port' \(TOOLCRIB_PORT\) must be a whole number \(0 or more\), not 'http'"),
        ({"TOOLCRIB_PORT": "-1"}, "whole number"),
        ({"TOOLCRIB_RATE": "nan"}, "must be a number"),
        ({"TOOLCRIB_POLICY_WEBHOOK_OPEN": "maybe"}, "true or false"),
        ({"TOOLCRIB_POLICY": "ask"}, "use one of 'allow', 'cedar', 'webhook'"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, environ: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        load(tmp_path, **environ)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("prot = 1", "'prot'.*did you mean 'port'"),
        ("[jwt]\nissure = 1", "'jwt_issure'.*did you mean 'jwt_issuer'"),
        ("port = true", "whole number"),
        ("host = 1", "must be text"),
        ("seal_keys = [1]", "list of texts"),
        ("rate = false", "must be a number"),
        ("port =", "cannot be read"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, toml: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        load(tmp_path, toml)
    assert "toolcrib.toml" in str(caught.value)


def test_lists_and_flags_in_variables(tmp_path: Path) -> None:
    settings = load(tmp_path, TOOLCRIB_PYTHON_TOOLS="a.b, c,", TOOLCRIB_RUN_BUNDLES="off")
    assert settings.python_tools == ("a.b", "c")
    assert settings.run_bundles is False
    assert load(tmp_path, TOOLCRIB_PYTHON_TOOLS='["a.b", "c"]').python_tools == ("a.b", "c")
    assert load(tmp_path, TOOLCRIB_MCP_COMMANDS='["npx server --ports 1,2"]').mcp_commands == (
        "npx server --ports 1,2",
    )
    assert load(tmp_path, TOOLCRIB_DENIED_ADDRESSES="[::1], [::2]:80").denied_addresses == ("[::1]", "[::2]:80")
    with pytest.raises(SettingsError, match=r"'python_tools' \(TOOLCRIB_PYTHON_TOOLS\) must be a list of texts"):
        load(tmp_path, TOOLCRIB_PYTHON_TOOLS="[1]")


def test_a_command_may_hold_commas_so_a_variable_has_one_a_line(tmp_path: Path) -> None:
    commands = ("npx server --ports 1,2", "uvx other")
    assert load(tmp_path, TOOLCRIB_MCP_COMMANDS="\n  npx server --ports 1,2\nuvx other\n").mcp_commands == commands
    assert load(tmp_path, f"mcp_commands = {list(commands)}").mcp_commands == commands


def test_a_wrong_secret_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'s3_session_token' \(.*toolcrib.toml\) must be text") as caught:
        load(tmp_path, "s3_session_token = 20222")
    assert "20222" not in str(caught.value)


def test_an_option_is_checked_as_well(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'prot' \(--port\); did you mean 'port'"):
        load(tmp_path).with_changes("--port", prot=1)
    with pytest.raises(SettingsError, match=r"'port' \(--port\) must be a whole number"):
        load(tmp_path).with_changes("--port", port=-1)


def test_settings_that_are_made_directly_read_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_PORT", "9")
    monkeypatch.setenv("PORT", "9")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolcrib.toml").write_text("port = 9")
    assert Settings(host="h").port == 8000


def test_settings_do_not_change(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(tmp_path).port = 1  # type: ignore[misc]


def test_everything_is_below_the_data_folder_by_default(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.data_folder == tmp_path / ".local/share/toolcrib"
    assert settings.store_url == f"sqlite:///{tmp_path}/.local/share/toolcrib/toolcrib.db"
    assert load(tmp_path, XDG_DATA_HOME="/x").data_folder == Path("/x/toolcrib")
    moved = load(tmp_path, TOOLCRIB_DATA_DIR=str(tmp_path / "a b"))
    assert moved.blobs_url == f"file://{tmp_path}/a%20b/blobs"
    assert load(tmp_path, TOOLCRIB_STORE="memory:").store_url == "memory:"


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"host": "::1", "port": 81}, "http://[::1]:81"),
        ({"host": "::1", "public_url": "https://tools.example/crib/"}, "https://tools.example/crib"),
    ],
)
def test_links_begin_with_an_address_that_can_be_called(given: dict[str, Any], address: str) -> None:
    assert Settings(**given, environ={}).service_url == address


def test_both_variables_name_plugin_folders(tmp_path: Path) -> None:
    assert load(tmp_path, AIWHISPERER_PLUGINS_DIR="/p").plugin_folders == [Path("/p")]
    both = load(tmp_path, AIWHISPERER_PLUGINS_DIR="/p", TOOLCRIB_PLUGINS_DIR="/q:/r")
    assert both.plugin_folders == [Path("/q"), Path("/r"), Path("/p")]
    shown = {name: (value, source) for name, value, source in both.in_force()}
    assert shown["plugins_dir"] == ("/q:/r:/p", "TOOLCRIB_PLUGINS_DIR, AIWHISPERER_PLUGINS_DIR")
    assert load(tmp_path).plugin_folders == []


def test_secrets_are_masked_wherever_settings_are_shown(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        TOOLCRIB_SEAL_KEYS="hunter2",
        TOOLCRIB_POLICY_WEBHOOK_SECRET="hunter2",
        TOOLCRIB_S3_SECRET_ACCESS_KEY="hunter2",
        TOOLCRIB_S3_ACCESS_KEY_ID="hunter2",
        TOOLCRIB_STORE="mongodb://ann:hunter2@db.example/tools",
        OTHER_TOKEN="hunter2",
    )
    shown = {name: value for name, value, _ in settings.in_force()}
    assert "hunter2" not in str(shown)
    assert shown["store"] == f"mongodb://ann:{MASK}@db.example/tools"
    assert shown["seal_keys"] == MASK
    assert shown["events_secret"] == ""
    assert "hunter2" not in repr(settings) + str(settings)
    assert "ann" in repr(settings)


def test_every_setting_is_described() -> None:
    described = {one.name: one for one in describe()}
    fields = Settings.model_fields.keys() - {"sources", "environ"}
    assert described.keys() == fields
    assert all(
        one.description.endswith(".") and one.variable == f"TOOLCRIB_{one.name.upper()}" for one in described.values()
    )
    words = ("secret", "token", "seal_keys")
    assert all(one.secret for one in described.values() if any(word in one.name for word in words))


# What tools need


def test_the_environment_wins_over_the_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# comment\nSCRAPERAPI_KEY=from-file\nexport PROXY = 'a b'\nEMPTY=\nURL=http://x/#y # note\nbroken line\n"
        'QUOTED="x # y"\n'
    )
    secrets = Secrets({"SCRAPERAPI_KEY": "from-environment"}, tmp_path / ".env")
    assert secrets("SCRAPERAPI_KEY") == "from-environment"
    assert (secrets("PROXY"), secrets("URL"), secrets("QUOTED")) == ("a b", "http://x/#y", "x # y")
    assert secrets("EMPTY") is secrets("NOTHING") is None
    assert "from-environment" not in repr(secrets)


def test_an_env_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff")
    with pytest.raises(SettingsError, match=r"\.env' cannot be read"):
        Secrets({}, tmp_path / ".env")("A")


def test_the_settings_know_the_secrets(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    env_file = tmp_path / "here/.env"
    env_file.write_text("A=1")
    settings = load(tmp_path, TOOLCRIB_ENV_FILE=str(env_file), B="2")
    assert (settings.secrets("A"), settings.secrets("B")) == ("1", "2")


@pytest.mark.parametrize(
    ("variable", "way_out"),
    [
        ("TOOLCRIB_PYTHON_MODULES", "list each tool as package.module:attribute in 'python_tools'"),
        ("TOOLCRIB_BUNDLE_USER", "each run of a bundle has a user id of its own; take it out"),
    ],
)
def test_a_setting_of_the_first_release_that_is_gone_says_what_is_there_instead(
    tmp_path: Path, variable: str, way_out: str
) -> None:
    with pytest.raises(SettingsError, match=rf"there is no setting .* \({variable}\); it is gone.*{way_out}"):
        load(tmp_path, **{variable: "os"})
