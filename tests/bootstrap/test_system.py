"""Settings in, running system out: parts are opened at the first need and closed together."""

from pathlib import Path

import pytest

from toolcrib import Binding, DeniedError, SafetyLevel, ToolSpec, open_catalogue, tool
from toolcrib.bootstrap import System, open_system
from toolcrib.bootstrap.sandboxes import own_places
from toolcrib.calling.call import Unbound
from toolcrib.core.errors import SettingsError, StoreError
from toolcrib.core.query import ALL
from toolcrib.core.tokens import TokenRecord
from toolcrib.settings import Settings

SPEC = ToolSpec(name="add", description="Adds.")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=str(tmp_path / "data"))


def test_nothing_is_opened_before_it_is_needed(settings: Settings) -> None:
    with open_system(settings.with_changes("test", policy="cedar", store="mongodb://127.0.0.1:9/x")) as system:
        system.close()
    assert not settings.data_folder.exists()


def test_every_part_is_opened_once_and_shared(settings: Settings) -> None:
    with open_system(settings.with_changes("test", blobs="memory:", events_url="https://example.com/")) as system:
        assert system.catalogue.store is system.store
        assert system.catalogue.audit is system.audit
        assert system.blobs is system.blobs
        assert system.outbox is system.outbox is not None
        assert system.calls.resolve == system.catalogue.resolve


async def test_one_clock_for_all_that_is_written(settings: Settings) -> None:
    with System(
        settings.with_changes("test", store="memory:", events_url="https://x.test/"), clock=lambda: 7.0
    ) as system:
        system.catalogue.publish(SPEC)
        await system.calls.execute("nobody", {})
        [waiting] = system.store.outbox()
        assert system.catalogue.entry("add").at == waiting.payload["at"] == 7.0
        assert [event.at for event in system.audit.events()] == [7.0] * 4


def test_the_end_closes_what_was_opened(settings: Settings) -> None:
    system = open_system(settings)
    system.catalogue.publish(SPEC)
    system.tokens.add(TokenRecord("1", "ann", "reader", "d", 0.0))
    system.close()
    system.close()
    with pytest.raises(StoreError):
        system.store.get("add")
    with pytest.raises(StoreError):
        system.audit.events()


def test_closing_a_catalogue_closes_all_that_was_opened_for_it(settings: Settings) -> None:
    catalogue = open_catalogue(settings=settings)
    catalogue.publish(SPEC)
    catalogue.close()
    with pytest.raises(StoreError):
        catalogue.get("add")
    with pytest.raises(StoreError):
        catalogue.publish(SPEC)


def test_a_start_that_fails_leaves_nothing_open(settings: Settings) -> None:
    system = System(settings.with_changes("test", policy="cedar"))
    with pytest.raises(SettingsError, match="policy_file"), system:
        assert system.catalogue
    with pytest.raises(StoreError):
        system.store.count(ALL)


def test_what_a_catalogue_says_of_a_function_does_not_make_it_safer(settings: Settings) -> None:
    @tool(safety_level=SafetyLevel.DANGEROUS)
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    catalogue = open_catalogue("memory:", settings, functions={"wipe": wipe})
    spec = ToolSpec(name="wipe", description="Harmless.", binding=Binding(system_function_rpc_id="wipe"))
    catalogue.publish(spec)
    assert catalogue.tool("wipe").spec.safety_level is SafetyLevel.DANGEROUS
    catalogue.close()


# The tools of this machine

PLUGIN = "from toolcrib import tool\n\n@tool\ndef add(a: int) -> int:\n    'Add.'\n    return a + 1\n"


@pytest.fixture
def system(settings: Settings, tmp_path: Path) -> System:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/demo.py").write_text(PLUGIN)
    return System(settings.with_changes("test", store="memory:", plugins_dir=str(tmp_path / "plugins")))


def test_a_kept_tool_that_says_how_it_runs_comes_before_a_plugin(system: System) -> None:
    with system:
        assert system.find_tool("add").spec.description == "Add."
        system.catalogue.publish(SPEC)
        assert system.find_tool("add").spec.description == "Add."
        system.catalogue.update("add", binding={"python": "elsewhere:add"})
        found = system.find_tool("add")
        assert isinstance(found, Unbound)
        assert isinstance(found.reason, DeniedError) and "elsewhere" in str(found.reason)


def test_a_tool_that_is_only_described_or_not_there_says_so(system: System) -> None:
    with system:
        system.catalogue.publish(ToolSpec(name="firefox", description="A browser."))
        found = system.find_tool("firefox")
        assert isinstance(found, Unbound) and "does not say how" in str(found.reason)
        with pytest.raises(KeyError, match="did you mean 'add'"):
            system.find_tool("ad")
        with pytest.raises(KeyError, match="did you mean 'firefox'"):
            system.find_tool("firefix")
        assert system.find_tool("goto").spec.name == "goto"


def test_what_is_kept_outside_of_the_data_folder_is_hidden_from_bundles_too(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own = [tmp_path / name for name in ("tools.db", "tools.db-wal", "tools.audit.db", "tools.audit.db-wal")]
    for path in own:
        path.touch()
    (tmp_path / "code").mkdir()
    hidden = own_places(settings.with_changes("test", store="sqlite:///~/tools.db", blobs="file:///~/code"))
    assert set(hidden) >= {*own, tmp_path / "code", settings.data_folder}
    elsewhere = {"store": "mongodb://db/x", "blobs": "s3://x", "env_file": str(tmp_path / ".env")}
    assert own_places(settings.with_changes("test", **elsewhere)) == [settings.data_folder]
