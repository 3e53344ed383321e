"""Row 3 of the attack: a credential goes where it was given for, and nowhere else."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.conftest import Attacked
from tests.support.receiver import Receiver, receiving
from tests.surfaces.http.bundles import bundle, code_zip

from toolcrib import Binding, ToolSpec
from toolcrib.adapters.sealing import AesGcmSeal, new_key
from toolcrib.bootstrap import open_blobs, open_catalogue, rotate_seal
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.bundles import ingest
from toolcrib.catalogue.destinations import destination_of
from toolcrib.core.addresses import check_service_url
from toolcrib.core.errors import SettingsError, StoreError, ToolValidationError
from toolcrib.core.json import MASK
from toolcrib.formats.bundle import bundle_link
from toolcrib.formats.toolentry import document_to_entry, entry_changes
from toolcrib.ports import Change
from toolcrib.settings import Settings
from toolcrib.surfaces.backups import backup, restore

SECRET = "s3cr3t-of-the-owner"
KEY = new_key()


@pytest.fixture
def good() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def evil() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=str(tmp_path / "data"), allowed_addresses=("127.0.0.1",), seal_keys=(KEY,))


@pytest.fixture
def catalogue(store_url: str, settings: Settings) -> Iterator[Catalogue]:
    found = open_catalogue(store_url, settings)
    yield found
    found.close()


def carries_secret(receiver: Receiver) -> bool:
    return any(SECRET in str(request) for request in receiver.received)


# Through the service, on the stores that an organisation runs it on


def entry(url: str, **fields: Any) -> dict[str, Any]:
    return {
        "tool_id": "weather",
        "tool_search_description": "Tells the weather.",
        "tool_api_spec": {"input": {"type": "object"}},
        "tool_service_url": url,
        **fields,
    }


def with_key(value: str = MASK) -> dict[str, Any]:
    return {"default_tool_usage_credentials": {"api_key": value}}


class Office:
    """Ann keeps a tool with a credential; Mallory may publish too, and change it: owners are another wall."""

    def __init__(self, attacked: Attacked, good: Receiver, evil: Receiver) -> None:
        attacked.service.environment["TOOLCRIB_ALLOWED_ADDRESSES"] = "127.0.0.1"
        attacked.service.environment["TOOLCRIB_TOOL_OWNERS"] = "shared"
        attacked.service.start()
        self.ann = attacked.as_role("publisher", "ann")
        self.mallory = attacked.as_role("runner,publisher", "mallory")
        self.good, self.evil = good, evil

    def ann_publishes(self) -> None:
        given = entry(self.good.url, **with_key(SECRET))
        assert self.ann.post("/tools?replace=true", json=given).status_code == 201

    def ran(self) -> None:
        answer = self.mallory.post("/tools/weather/run", json={"arguments": {}})
        assert answer.json()["success"], answer.text
        assert not carries_secret(self.evil)

    def arrives(self) -> None:
        """Still at the good one."""
        self.good.received.clear()
        self.ran()
        assert carries_secret(self.good)


@pytest.fixture
def office(attacked: Attacked, good: Receiver, evil: Receiver) -> Office:
    return Office(attacked, good, evil)


def test_no_way_of_writing_sends_a_credential_elsewhere(office: Office) -> None:
    mallory, evil = office.mallory, office.evil.url

    def uploaded(given: dict[str, Any]) -> httpx.Response:
        return mallory.post("/tools/upload?replace=true", files={"file": ("b.zip", bundle(given))})

    with_mask: list[Callable[[], httpx.Response]] = [
        lambda: mallory.put("/tools/weather", json={"tool_service_url": evil, **with_key()}),
        lambda: mallory.post("/tools?replace=true", json=entry(evil, **with_key())),
        lambda: uploaded(entry(evil, **with_key())),
        lambda: uploaded(entry("", **with_key())),
        lambda: mallory.put(
            "/tools/weather",
            json={"tool_service_url": "", "tool_metadata": {"toolcrib": {"binding": {"mcp": evil}}}, **with_key()},
        ),
        lambda: mallory.put("/tools/weather", json={"tool_service_url": f"{office.good.url}/admin", **with_key()}),
    ]
    for write in with_mask:
        office.ann_publishes()
        before = mallory.get("/tools/weather")
        answer = write()
        assert answer.status_code == 400, answer.text
        said = answer.json()["detail"]
        assert "the credential 'api_key' of 'weather' was given for the service" in said
        assert office.good.url in said and "give its value again, or leave it out" in said
        assert mallory.get("/tools/weather").headers["etag"] == before.headers["etag"]
        office.arrives()
    without: list[Callable[[], httpx.Response]] = [
        lambda: mallory.put("/tools/weather", json={"tool_service_url": evil}),
        lambda: mallory.post("/tools?replace=true", json=entry(evil)),
        lambda: uploaded(entry(evil)),
    ]
    for write in without:
        office.ann_publishes()
        answer = write()
        assert answer.is_success and answer.json()["emptied_credentials"] == ["api_key"], answer.text
        assert mallory.get("/tools/weather").json()["default_tool_usage_credentials"] == {}
        office.ran()
        assert office.evil.received and not carries_secret(office.evil)
    messages = [answer().json()["message"] for answer in without[::2]]
    assert messages == ["Tool updated successfully", "Tool uploaded successfully"]


def test_the_history_leads_no_credential_elsewhere(office: Office) -> None:
    mallory = office.mallory
    assert mallory.post("/tools", json=entry(office.evil.url)).status_code == 201
    office.ann_publishes()
    answer = mallory.post("/tools/weather/restore", json={"version": 1})
    assert answer.json()["emptied_credentials"] == ["api_key"]
    office.ran()
    office.ann_publishes()
    assert mallory.delete("/tools/weather").is_success
    assert mallory.post("/tools", json=entry(office.evil.url, **with_key())).status_code == 400
    assert mallory.post("/tools", json=entry(office.evil.url)).status_code == 201
    office.ran()
    assert mallory.put("/tools/weather", json=with_key()).status_code == 400
    assert mallory.delete("/tools/weather").is_success
    assert mallory.post("/tools/weather/restore", json={"version": 4}).is_success
    office.arrives()


# A call opens the credentials of the record that it was resolved from


def spec(url: str, **fields: Any) -> ToolSpec:
    return ToolSpec.parse({"name": "weather", "description": "d", "binding": {"service_url": url}, **fields})


def test_what_stays_where_it_is_keeps_its_credential(catalogue: Catalogue) -> None:
    url = "http://a.example/x"
    catalogue.publish(spec(url, credentials={"api_key": SECRET}))
    read = document_to_entry(catalogue.entry("weather").document)
    for change in (
        {"tool_search_description": "Tells it again."},
        {"tool_service_url": url},
        {"tool_service_url": "HTTP://A.example:80/x#there", **with_key()},
        {**read, "tool_man_page_doc": "Read and written back"},
    ):
        assert catalogue.update("weather", lambda old, given=change: entry_changes(old, given)).emptied == ()  # type: ignore[misc]
        assert catalogue.credentials("weather") == {"api_key": SECRET}


@pytest.mark.parametrize("way", ["service_url", "mcp"])
@pytest.mark.parametrize(
    "credentials",
    [
        {"api_key": f"{SECRET} "},
        {"bearer_token": f"{SECRET}\t"},
        {"headers": {"X-Key": f" {SECRET}"}},
        {"headers": {f"{SECRET} ": "x"}},
        {"headers": {f"{SECRET}:": "x"}},
    ],
)
async def test_a_credential_that_cannot_be_sent_is_shown_to_nobody(
    catalogue: Catalogue, good: Receiver, way: str, credentials: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A blank that came along with a pasted key: whoever wrote the HTTP library says which value is wrong."""
    spec = ToolSpec(name="weather", description="d", binding=Binding(**{way: good.url}), credentials=credentials)
    catalogue.publish(spec)
    result = await Calls(catalogue.resolve).execute("weather", {})
    assert result.error_code == "missing_config" and "cannot stand in a header" in (result.error or "")
    assert SECRET not in str(result) and SECRET not in caplog.text
    assert good.received == []


async def test_a_change_between_resolving_and_running_crosses_nothing(
    catalogue: Catalogue, good: Receiver, evil: Receiver
) -> None:
    catalogue.publish(spec(evil.url))
    aimed_at_evil = catalogue.tool("weather")
    catalogue.publish(spec(good.url, credentials={"api_key": SECRET}), replace=True)
    await aimed_at_evil.execute({})
    assert evil.received and not carries_secret(evil)
    aimed_at_good = catalogue.tool("weather")
    catalogue.update("weather", binding={"service_url": evil.url})
    await aimed_at_good.execute({})
    assert carries_secret(good)
    await catalogue.tool("weather").execute({})
    assert not carries_secret(evil)


# What is sealed


def sealed_text(catalogue: Catalogue) -> str:
    record = catalogue.store.get("weather")
    assert record is not None
    return str(record.document["credentials"]["api_key"])


def moved(catalogue: Catalogue, url: str, sealed: str) -> None:
    """What somebody who can write to the store may do."""
    record = catalogue.store.get("weather")
    assert record is not None
    document = {**record.document, "binding": {**record.document["binding"], "service_url": url}}
    catalogue.store.commit([Change("weather", {**document, "credentials": {"api_key": sealed}})])


async def test_a_sealed_value_that_is_moved_in_the_store_does_not_open(
    catalogue: Catalogue, good: Receiver, evil: Receiver
) -> None:
    catalogue.publish(spec(good.url, credentials={"api_key": SECRET}))
    moved(catalogue, evil.url, sealed_text(catalogue))
    with pytest.raises(StoreError, match="'weather' was changed in the store"):
        catalogue.credentials("weather")
    assert not (await run(catalogue)).success
    assert evil.received == []


async def run(catalogue: Catalogue) -> Any:
    return await Calls(catalogue.tool).execute("weather", {})


def of_the_first_release(catalogue: Catalogue, url: str) -> str:
    catalogue.publish(spec(url, credentials={"api_key": "x", "other": "y"}))
    sealed = AesGcmSeal([KEY]).close(SECRET, "weather\0api_key")
    moved(catalogue, url, sealed)
    return sealed


def opens_anywhere(sealed: str) -> bool:
    try:
        return bool(AesGcmSeal([KEY]).open(sealed, "weather\0api_key") == SECRET)
    except StoreError:
        return False


async def test_a_seal_of_the_first_release_opens_where_it_stands_and_is_made_anew(
    catalogue: Catalogue, good: Receiver, evil: Receiver
) -> None:
    of_the_first_release(catalogue, good.url)
    assert catalogue.credentials("weather") == {"api_key": SECRET}
    with pytest.raises(ToolValidationError, match="was given for the service"):
        catalogue.update("weather", binding={"service_url": evil.url}, credentials={"api_key": MASK})
    assert (await run(catalogue)).success and carries_secret(good)
    assert opens_anywhere(sealed_text(catalogue))
    catalogue.update("weather", description="Another.")
    assert not opens_anywhere(sealed_text(catalogue))
    assert catalogue.credentials("weather") == {"api_key": SECRET}
    moved(catalogue, evil.url, sealed_text(catalogue))
    assert not (await run(catalogue)).success
    assert evil.received == []


def test_rotating_the_keys_seals_anew(tmp_path: Path, settings: Settings, good: Receiver) -> None:
    url = f"sqlite:///{tmp_path}/tools.db"
    catalogue = open_catalogue(url, settings)
    of_the_first_release(catalogue, good.url)
    catalogue.close()
    assert rotate_seal(settings.with_changes("test", store=url)) == 1
    catalogue = open_catalogue(url, settings)
    assert not opens_anywhere(sealed_text(catalogue))
    assert catalogue.credentials("weather") == {"api_key": SECRET}
    catalogue.close()


def test_a_value_that_no_key_opens_does_not_stand_in_the_way(tmp_path: Path, settings: Settings) -> None:
    url = f"sqlite:///{tmp_path}/tools.db"
    catalogue = open_catalogue(url, settings)
    catalogue.publish(spec("https://example.com", credentials={"api_key": SECRET}))
    moved(catalogue, "https://example.com", sealed := AesGcmSeal([new_key()]).close(SECRET, "weather\0api_key"))
    catalogue.update("weather", description="Another.")
    assert sealed_text(catalogue) == sealed
    catalogue.close()


# Bundles, backups


def test_the_code_is_where_a_bundles_credentials_go(tmp_path: Path, settings: Settings) -> None:
    catalogue = open_catalogue(f"sqlite:///{tmp_path}/tools.db", settings)
    path = tmp_path / "bundle.zip"

    def upload(code: bytes, value: str | None, address: str = "http://a.example") -> Any:
        given = {"tool_id": "weather", **(with_key(value) if value else {})}
        path.write_bytes(bundle(given, code_zip(code)))
        return ingest(
            path,
            blobs=open_blobs(settings),
            catalogue=catalogue,
            link_for=lambda digest: bundle_link(address, digest),
            replace=True,
        )

    upload(b"one", SECRET)
    assert upload(b"one", MASK, "https://moved.example/x").emptied == ()
    assert catalogue.credentials("weather") == {"api_key": SECRET}
    with pytest.raises(ToolValidationError, match="was given for the code"):
        upload(b"two", MASK)
    assert catalogue.credentials("weather") == {"api_key": SECRET}
    assert upload(b"two", None).emptied == ("api_key",)
    assert catalogue.credentials("weather") == {}
    assert catalogue.restore("weather", 1).emptied == ()
    assert catalogue.credentials("weather") == {}
    catalogue.close()


def test_a_backup_holds_no_value_and_a_changed_one_opens_nowhere(
    tmp_path: Path, settings: Settings, good: Receiver, evil: Receiver
) -> None:
    here = settings.with_changes("test", store=f"sqlite:///{tmp_path}/here.db", blobs=f"file://{tmp_path}/blobs")
    catalogue = open_catalogue(settings=here)
    catalogue.publish(spec(good.url, credentials={"api_key": SECRET}))
    catalogue.close()
    saved, changed = tmp_path / "saved.zip", tmp_path / "changed.zip"
    backup(here, saved)
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(changed, "w") as other:
        for name in archive.namelist():
            content = archive.read(name)
            assert SECRET.encode() not in content
            other.writestr(name, content.replace(good.url.encode(), evil.url.encode()))
    for path, opens in ((saved, True), (changed, False)):
        there = here.with_changes("test", store=f"sqlite:///{tmp_path}/{path.stem}.db")
        restore(there, path)
        catalogue = open_catalogue(settings=there)
        if opens:
            assert catalogue.credentials("weather") == {"api_key": SECRET}
        else:
            with pytest.raises(StoreError):
                catalogue.credentials("weather")
        catalogue.close()


def test_what_is_exported_brings_no_credential_back_elsewhere(catalogue: Catalogue) -> None:
    catalogue.publish(spec("https://a.example/x", credentials={"api_key": SECRET}))
    exported = json.loads(json.dumps(catalogue.entry("weather").document))
    assert exported["credentials"] == {"api_key": MASK}
    assert catalogue.publish(exported, replace=True).emptied == ()
    assert catalogue.credentials("weather") == {"api_key": SECRET}
    exported["binding"]["service_url"] = "https://b.example/x"
    with pytest.raises(ToolValidationError, match=r"does not go to the service 'https://b\.example/x'"):
        catalogue.publish(exported, replace=True)
    catalogue.delete("weather")
    with pytest.raises(ToolValidationError, match="none is stored for it"):
        catalogue.publish(exported)


# Laws of destinations

HOSTS = st.sampled_from(["a.example", "b.example", "127.0.0.1", "[::1]", "xn--bcher-kva.example"])
PATHS = st.sampled_from(["/", "/v1", "/v1/", "/v1/x%20y", "/V1"])
QUERIES = st.sampled_from(["", "?to=a", "?to=b"])
ADDRESSES = st.tuples(st.sampled_from(["http", "https"]), HOSTS, st.sampled_from([80, 443, 8080]), PATHS, QUERIES)
Address = tuple[str, str, int, str, str]


def written(address: Address, *, loudly: bool, port: bool, fragment: str) -> str:
    scheme, host, number, path, query = address
    usual = {"http": 80, "https": 443}[scheme] == number
    place = f"{host.upper() if loudly else host}{'' if usual and not port else f':{number}'}"
    shown = "" if path == "/" and not query and not port else path
    return f"{scheme.upper() if loudly else scheme}://{place}{shown}{query}{fragment}"


SPELLING = st.fixed_dictionaries(
    {"loudly": st.booleans(), "port": st.booleans(), "fragment": st.sampled_from(["", "#x"])}
)


@given(ADDRESSES, ADDRESSES, SPELLING, SPELLING)
def test_two_addresses_are_one_destination_if_they_are_asked_alike(
    one: Address, two: Address, first: dict[str, Any], second: dict[str, Any]
) -> None:
    urls = written(one, **first), written(two, **second)
    for way in ("service_url", "mcp"):
        found = [destination_of(Binding(**{way: url})) for url in urls]
        assert (found[0] == found[1]) == (one == two)
    if one == two:
        asked = [check_service_url(url) for url in urls]
        assert len({(each.scheme, each.hostname, each.path, each.query) for each in asked}) == 1


FIELDS = st.fixed_dictionaries(
    {
        "python": st.sampled_from(["", "goto", "click", "toolcrib.toolsets.browser.standalone:goto", "a.b:goto"]),
        "system_function_rpc_id": st.sampled_from(["", "goto", "f"]),
        "service_url": st.sampled_from(["", "https://a.example", "https://b.example"]),
        "mcp": st.sampled_from(["", "goto", "https://a.example", "https://a.example#t", "npx server", "npx server#t"]),
        "source_code_link": st.sampled_from(
            ["", "https://a.example", bundle_link("http://x", "0" * 64), bundle_link("http://y", "0" * 64)]
        ),
    }
)


@given(FIELDS, FIELDS)
def test_a_destination_is_what_counts_of_a_binding(one: dict[str, str], two: dict[str, str]) -> None:
    bindings = Binding(**one), Binding(**two)
    found = [destination_of(binding) for binding in bindings]
    ways = [binding.nearest for binding in bindings]
    if found[0] == found[1]:
        assert ways[0] == ways[1]
    if ways[0] == ways[1] and ways[0] and one[ways[0]] == two[ways[0]]:
        assert found[0] == found[1]
    assert destination_of(Binding(python="goto")) == destination_of(
        Binding(python="toolcrib.toolsets.browser.standalone:goto", service_url="https://evil.example")
    )


@pytest.mark.parametrize(
    "binding", [{}, {"service_url": "no address"}, {"mcp": "http://"}, {"service_url": "http://u:p@h/"}]
)
def test_a_record_that_is_older_than_the_rules_has_a_destination_too(binding: dict[str, Any]) -> None:
    old = Binding.model_construct(**binding)
    assert destination_of(old) == destination_of(Binding.model_construct(**binding))
    assert destination_of(old) != destination_of(Binding(service_url="https://evil.example"))


def test_no_complaint_about_an_address_shows_its_password() -> None:
    with pytest.raises(SettingsError) as raised:
        open_catalogue(f"postgres://ann:{SECRET}@127.0.0.1/tools")
    assert SECRET not in str(raised.value) and "ann" in str(raised.value)
