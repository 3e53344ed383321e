"""The catalogue's rules, the same on every store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import (
    BreakingChangeError,
    ConflictError,
    InvalidQueryError,
    InvalidSchemaError,
    ToolExistsError,
    ToolInUseError,
    ToolNotFoundError,
    ToolValidationError,
    VersionNotFoundError,
)
from toolcrib.core.json import MASK
from toolcrib.core.spec import ToolSpec
from toolcrib.define import tool
from toolcrib.formats.toolentry import entry_changes

STRING = {"type": "string"}


def spec(name: str = "weather", **fields: Any) -> ToolSpec:
    return ToolSpec.parse({"name": name, "description": f"Tells the {name}", **fields})


def taking(*names: str, **fields: Any) -> dict[str, Any]:
    properties = dict.fromkeys(names, STRING)
    return {
        "type": "object",
        "properties": properties,
        "required": list(names),
        "additionalProperties": False,
        **fields,
    }


# Reading and writing


def test_what_is_published_is_there(catalogue: Catalogue) -> None:
    published = catalogue.publish(spec(tags=["sky"], parameters=taking("city")))
    assert published.version == 1
    assert catalogue.get("weather") == published.spec == spec(tags=["sky"], parameters=taking("city"))
    assert "weather" in catalogue
    assert len(catalogue) == 1
    assert [found.name for found in catalogue] == ["weather"]


def test_it_outlives_the_process(catalogue: Catalogue, reopen: Callable[[], Catalogue]) -> None:
    catalogue.publish(spec(metadata={"stars": 5}))
    assert reopen().get("weather") == spec(metadata={"stars": 5})


def test_a_tool_and_plain_data_can_be_published(catalogue: Catalogue) -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    assert catalogue.publish(add).spec == add.spec
    assert catalogue.publish({"name": "plain", "description": "d"}).spec == ToolSpec(name="plain", description="d")


def test_a_missing_tool_is_not_found(catalogue: Catalogue) -> None:
    for ask in (catalogue.get, catalogue.entry, catalogue.history, catalogue.tool, catalogue.delete):
        with pytest.raises(ToolNotFoundError, match="'nobody'"):
            ask("nobody")
    with pytest.raises(ToolNotFoundError):
        catalogue.update("nobody", description="x")
    assert "nobody" not in catalogue
    assert 3 not in catalogue


def test_a_taken_name_is_refused_unless_it_is_replaced(catalogue: Catalogue) -> None:
    catalogue.publish(spec())
    with pytest.raises(ToolExistsError, match="'weather'"):
        catalogue.publish(spec(description="other"))
    assert catalogue.publish(spec(description="other"), replace=True).version == 2
    assert catalogue.get("weather").description == "other"


def test_many_are_published_all_or_none(catalogue: Catalogue) -> None:
    catalogue.publish(spec("b"))
    with pytest.raises(ToolExistsError, match="'b'"):
        catalogue.publish_many([spec("a"), spec("b"), spec("c")])
    with pytest.raises(ToolExistsError, match="given twice"):
        catalogue.publish_many([spec("a"), spec("a")])
    with pytest.raises(InvalidSchemaError):
        catalogue.publish_many([spec("a"), {**spec("c").to_dict(), "api_spec": {"input": {"type": "nothing"}}}])
    assert [found.name for found in catalogue] == ["b"]
    assert [entry.name for entry in catalogue.publish_many([spec("c"), spec("a")])] == ["c", "a"]
    assert [found.name for found in catalogue] == ["a", "b", "c"]
    assert catalogue.publish_many([]) == []


@pytest.mark.parametrize(
    ("api_spec", "words"),
    [
        ({"input": {"type": "strnig"}}, "'input' in the interface of 'weather'"),
        ({"output": []}, "'output' in the interface"),
        ({"entrypoints": {"execute_command": {"input": {"required": 1}}}}, "'entrypoints.execute_command.input'"),
    ],
)
def test_a_published_interface_holds_json_schemas(catalogue: Catalogue, api_spec: Any, words: str) -> None:
    with pytest.raises(InvalidSchemaError, match=words):
        catalogue.publish(spec(api_spec=api_spec))
    catalogue.publish(spec())
    with pytest.raises(InvalidSchemaError, match=words):
        catalogue.update("weather", api_spec=api_spec)


def test_a_published_interface_gives_the_parameters(catalogue: Catalogue) -> None:
    catalogue.publish(spec(api_spec={"input": taking("city"), "output": STRING}))
    assert catalogue.get("weather").parameters == taking("city")
    catalogue.update("weather", api_spec={"input": taking("city", required=[])})
    assert catalogue.get("weather").parameters == taking("city", required=[])
    assert catalogue.get("weather").returns == {}
    catalogue.update("weather", returns=STRING)
    assert catalogue.get("weather").api_spec == {"input": taking("city", required=[]), "output": STRING}


def test_pages_follow_each_other(catalogue: Catalogue) -> None:
    catalogue.publish_many(spec(f"tool-{number}", tags=["even"] if number % 2 == 0 else []) for number in range(7))
    page = catalogue.query({"tags": "even"}, limit=3)
    assert [found.name for found in page] == ["tool-0", "tool-2", "tool-4"]
    rest = catalogue.query({"tags": "even"}, limit=3, cursor=page.next_cursor)
    assert [found.name for found in rest] == ["tool-6"]
    assert rest.next_cursor is None
    assert catalogue.query(limit=7).next_cursor is None
    assert catalogue.count({"tags": "even"}) == 4
    assert len(catalogue.query(limit=None)) == 7
    assert [found.name for found in page[1:]] == ["tool-2", "tool-4"]
    assert [entry.name for entry in catalogue.entries({"name": {"$gt": "tool-4"}})] == ["tool-5", "tool-6"]
    with pytest.raises(InvalidQueryError, match="at least 1"):
        catalogue.query(limit=0)
    with pytest.raises(InvalidQueryError, match=r"\$where"):
        catalogue.query({"$where": "1"})


# Updating


def test_an_update_changes_what_it_names(catalogue: Catalogue) -> None:
    catalogue.publish(spec(tags=["sky"], author="Ann"))
    entry = catalogue.update("weather", description="better", tags=["sky", "rain"])
    assert entry.spec == spec(description="better", tags=["sky", "rain"], author="Ann")
    assert entry.version == 2
    assert catalogue.update("weather", lambda now: {"author": now.author.upper()}).spec.author == "ANN"


def test_true_is_not_one(catalogue: Catalogue) -> None:
    catalogue.publish(spec(metadata={"x": 1}))
    assert catalogue.update("weather", metadata={"x": True}).version == 2
    assert catalogue.get("weather").metadata["x"] is True


def test_an_update_that_changes_nothing_writes_nothing(catalogue: Catalogue) -> None:
    before = catalogue.publish(spec())
    assert catalogue.update("weather", description=before.spec.description).etag == before.etag
    assert len(catalogue.history("weather")) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"name": "other"}, "cannot be renamed"), ({"colour": 1}, "'colour'"), ({"tags": 3}, "'tags'")],
)
def test_a_wrong_update_is_refused(catalogue: Catalogue, changes: dict[str, Any], words: str) -> None:
    catalogue.publish(spec())
    with pytest.raises(ToolValidationError, match=words):
        catalogue.update("weather", **changes)


def test_breaking_callers_needs_a_higher_major_version(catalogue: Catalogue) -> None:
    catalogue.publish(spec(version="9.1.0", parameters=taking("city")))
    with pytest.raises(BreakingChangeError) as caught:
        catalogue.update("weather", parameters=taking("town"), version="9.2.0")
    assert caught.value.changes == ("parameter 'town' is now required", "parameter 'city' was removed")
    assert catalogue.get("weather").version == "9.1.0"
    assert catalogue.update("weather", parameters=taking("town"), version="10.0.0").broke == ()
    forced = catalogue.update("weather", parameters=taking("place"), force=True)
    assert forced.broke == ("parameter 'place' is now required", "parameter 'town' was removed")
    with pytest.raises(BreakingChangeError):
        catalogue.publish(spec(parameters=taking("x")), replace=True)
    assert catalogue.publish(spec(parameters=taking("x")), replace=True, force=True).broke


def test_an_entry_is_updated_in_its_own_words(catalogue: Catalogue) -> None:
    catalogue.publish(spec(metadata={"version": "1.0.0"}, version="1.0.0", api_spec={"input": taking("city")}))
    body = {"tool_api_spec": {"input": taking("town")}}
    with pytest.raises(BreakingChangeError):
        catalogue.update("weather", lambda now: entry_changes(now, body))
    catalogue.update("weather", lambda now: entry_changes(now, {**body, "tool_metadata": {"version": "2.0.0"}}))
    assert catalogue.get("weather").parameters == taking("town")
    assert catalogue.get("weather").version == "2.0.0"


def test_the_loser_of_a_race_hears_of_it(catalogue: Catalogue) -> None:
    read = catalogue.publish(spec())
    catalogue.update("weather", description="first", expected=read.etag)
    with pytest.raises(ConflictError, match="changed by somebody else"):
        catalogue.update("weather", description="second", expected=read.etag)
    with pytest.raises(ConflictError):
        catalogue.delete("weather", expected=read.etag)
    assert catalogue.get("weather").description == "first"


def test_updates_without_an_etag_do_not_lose_each_other(catalogue: Catalogue) -> None:
    catalogue.publish(spec())
    _add_tags_at_once([catalogue] * 4)
    assert len(catalogue.get("weather").tags) == 16
    assert len(catalogue.history("weather")) == 17


def test_nor_do_those_of_several_processes(catalogue: Catalogue, reopen: Callable[[], Catalogue]) -> None:
    catalogue.publish(spec())
    _add_tags_at_once([catalogue, reopen(), reopen()])
    assert len(catalogue.get("weather").tags) == 12


def _add_tags_at_once(catalogues: list[Catalogue]) -> None:
    failures: list[BaseException] = []

    def add_tags(worker: int) -> None:
        try:
            for number in range(4):
                label = f"{worker}-{number}"
                catalogues[worker].update("weather", lambda now, label=label: {"tags": [*now.tags, label]})  # type: ignore[misc]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=add_tags, args=(worker,)) for worker in range(len(catalogues))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# Deleting and history


def test_a_deleted_tool_is_gone_and_its_history_stays(catalogue: Catalogue) -> None:
    catalogue.publish(spec())
    catalogue.update("weather", description="two")
    catalogue.delete("weather")
    assert "weather" not in catalogue
    assert [(entry.version, entry.deleted) for entry in catalogue.history("weather")] == [
        (3, True),
        (2, False),
        (1, False),
    ]
    assert catalogue.version("weather", 1).spec == spec()
    with pytest.raises(ToolNotFoundError):
        catalogue.version("weather", 3)
    assert catalogue.publish(spec()).version == 4


def test_an_old_version_can_be_restored(catalogue: Catalogue) -> None:
    catalogue.publish(spec(parameters=taking("city")))
    catalogue.update("weather", parameters=taking("town"), version="1.0.0")
    restored = catalogue.restore("weather", 1)
    assert (restored.version, restored.spec) == (3, spec(parameters=taking("city")))
    assert restored.broke == ("parameter 'city' is now required", "parameter 'town' was removed")
    catalogue.delete("weather")
    assert catalogue.restore("weather", 2).spec.version == "1.0.0"
    with pytest.raises(VersionNotFoundError, match="'weather' has no version 9; it has 1 to 5"):
        catalogue.restore("weather", 9)
    with pytest.raises(ToolNotFoundError, match="'weather' has no version 4; it was deleted there"):
        catalogue.version("weather", 4)
    with pytest.raises(ToolNotFoundError, match="no tool is called 'nobody'"):
        catalogue.version("nobody", 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"replaced_by": "weather"},
        {"compatibilities": ["type:parser", "weather"]},
        {"metadata": {"pipeline": {"steps": [{"tool": "fetch"}, {"tool": "weather"}]}}},
        {"metadata": {"pipeline": [{"step": 1, "tool": "weather"}]}},
        {"actions": {"tell": {"call": "execute", "steps": [{"tool": "weather"}]}}},
    ],
)
def test_a_tool_that_others_name_stays(catalogue: Catalogue, fields: dict[str, Any]) -> None:
    catalogue.publish_many([spec(), spec("user", **fields), spec("bystander", incompatible_with=["weather"])])
    with pytest.raises(ToolInUseError) as caught:
        catalogue.delete("weather")
    assert caught.value.users == ("user",)
    catalogue.delete("weather", force=True)
    assert "weather" not in catalogue


def test_a_tool_that_names_itself_can_go(catalogue: Catalogue) -> None:
    catalogue.publish(spec(compatibilities=["weather"]))
    catalogue.delete("weather")


# Stacking


def test_stacks_are_judged(catalogue: Catalogue) -> None:
    catalogue.publish_many([
        spec("httpx", tool_type="http_client", compatibilities=["type:parser"]),
        spec("requests", tool_type="http_client"),
        spec("parsel", tool_type="parser"),
        spec("selenium", tool_type="browser", incompatible_with=["httpx"]),
    ])  # fmt: skip
    assert catalogue.check_compat(["httpx", "parsel"]).compatible
    assert "both of type 'http_client'" in catalogue.check_compat(["httpx", "requests"]).reason
    assert [found.name for found in catalogue.compatible_with("httpx")] == ["parsel"]
    assert [found.name for found in catalogue.compatible_with("parsel", "browser")] == ["selenium"]
    with pytest.raises(ToolNotFoundError, match="'nobody'"):
        catalogue.check_compat(["httpx", "nobody"])


# Searching


def test_search_finds_the_best_first_and_says_why(catalogue: Catalogue) -> None:
    catalogue.publish_many([
        spec("weather_forecast", description="Tells tomorrow's weather in a city", tags=["sky"]),
        spec("city_map", description="Draws a map of a city"),
        spec("send_mail", description="Sends a letter"),
    ])  # fmt: skip
    hits = catalogue.search("weather forecasts for a city")
    assert [hit.spec.name for hit in hits] == ["weather_forecast", "city_map"]
    assert 1 >= hits[0].score > hits[1].score > 0
    assert "'weather'" in hits[0].reason
    assert "name" in hits[0].reason
    assert [hit.spec.name for hit in catalogue.search("city", filter={"tags": "sky"})] == ["weather_forecast"]
    assert len(catalogue.search("city", limit=1)) == 1
    assert catalogue.search("city", limit=0) == []
    assert catalogue.search("") == []
    assert catalogue.search("zebra") == []


def test_search_follows_every_change(catalogue: Catalogue) -> None:
    catalogue.publish(spec(description="about rain"))
    assert catalogue.search("rain")
    catalogue.update("weather", description="about snow")
    assert not catalogue.search("rain")
    assert catalogue.search("snow")
    catalogue.delete("weather")
    assert not catalogue.search("snow")


def test_search_finds_what_another_process_wrote(catalogue: Catalogue, reopen: Callable[[], Catalogue]) -> None:
    other = reopen()
    assert catalogue.search("rain") == other.search("rain") == []
    other.publish(spec(description="about rain"))
    assert [hit.spec.name for hit in catalogue.search("rain")] == ["weather"]


def test_a_filter_is_applied_to_all_matches_not_only_to_the_first(catalogue: Catalogue) -> None:
    catalogue.publish_many(spec(f"tool-{number:03}", description="about rain") for number in range(300))
    catalogue.publish(spec("zz", description="much longer and about rain as well, among other things", tags=["last"]))
    assert [hit.spec.name for hit in catalogue.search("rain", limit=1, filter={"tags": "last"})] == ["zz"]


# Credentials


def test_credentials_are_masked_wherever_they_could_be_seen(catalogue: Catalogue) -> None:
    entry = catalogue.publish(spec(credentials={"api_key": "hunter2", "login": {"user": "u", "password": "hunter2"}}))
    assert catalogue.credentials("weather") == {"api_key": "hunter2", "login": {"user": "u", "password": "hunter2"}}
    masked = {"api_key": MASK, "login": MASK}
    assert entry.spec.credentials == catalogue.get("weather").credentials == masked
    seen = [
        repr(entry), str(entry.document), str(catalogue.query()[0].to_dict()), str(catalogue.search("weather")),
        str([found.document for found in catalogue.history("weather")]), str(catalogue.search("hunter2")),
        str(catalogue.audit.events(limit=1000)),  # type: ignore[union-attr]
        str(catalogue.store.get("weather")), str(catalogue.store.outbox()),
    ]  # fmt: skip
    assert "hunter2" not in "".join(seen)
    assert "password" not in "".join(seen)
    with pytest.raises(InvalidQueryError, match="credentials"):
        catalogue.query({"credentials.api_key": {"$exists": True}})


def test_a_masked_credential_given_back_means_the_stored_one(catalogue: Catalogue) -> None:
    catalogue.publish(spec(credentials={"one": "first", "two": "second"}))
    catalogue.update("weather", description="other")
    catalogue.update("weather", credentials={"one": MASK, "three": "third"})
    assert catalogue.credentials("weather") == {"one": "first", "three": "third"}
    catalogue.publish(catalogue.get("weather"), replace=True)
    assert catalogue.credentials("weather") == {"one": "first", "three": "third"}
    with pytest.raises(ToolValidationError, match="'four' of 'weather' is a mask"):
        catalogue.update("weather", credentials={"four": MASK})


def test_restoring_keeps_the_credentials_of_now(catalogue: Catalogue) -> None:
    catalogue.publish(spec(credentials={"key": "old"}))
    catalogue.update("weather", credentials={"key": "new"}, description="two")
    assert catalogue.restore("weather", 1).spec.description == "Tells the weather"
    assert catalogue.credentials("weather") == {"key": "new"}
    catalogue.delete("weather")
    catalogue.restore("weather", 1)
    assert catalogue.credentials("weather") == {"key": "old"}
