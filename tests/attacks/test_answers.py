"""Rows 20 and 22: whatever a tool returned or a store holds, each door answers, and tells what it could not keep."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.surfaces.conftest import lifespan

from toolcrib import InvalidOutputError, StoreEntryError, StoreError, ToolRegistry, ToolResult, open_catalogue, tool
from toolcrib.bootstrap import open_system
from toolcrib.core.json import as_json
from toolcrib.core.schema import OutputCheck
from toolcrib.formats.exchange import render_result
from toolcrib.settings import load_settings
from toolcrib.surfaces.cli.output import print_json
from toolcrib.surfaces.http.problems import json_bytes, problem_answer
from toolcrib.surfaces.service import application_of


def nested(levels: int, leaf: Any = None) -> Any:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


ODD: dict[str, Any] = {
    "half a pair": "\ud800",
    "half a pair in a key": {"a\ud800": 1},
    "200 levels": nested(200),
    "300 levels": nested(300),
    "900 levels": nested(900, "\ud800"),
    "100,000 levels": nested(100_000),
    "not a number": [float("nan"), float("inf"), {"a": -float("inf")}],
    "a number of 5,000 digits": 10**5000,
    "bytes": b"\xff",
}


def plain(body: bytes | str) -> Any:
    """Read as a strict reader does, who knows no NaN."""
    return json.loads(body, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("name", ODD)
def test_a_result_keeps_its_shape_whatever_the_data_are(name: str) -> None:
    answer = plain(json_bytes(ToolResult(True, ODD[name], metadata={"tool": "odd"}).to_json()))
    assert set(answer) == {"success", "data", "error", "error_code", "metadata"}
    assert (answer["success"], answer["metadata"]) == (True, {"tool": "odd"})
    assert answer["data"] is not None


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("format", ["mcp", "openai", "anthropic", "gemini"])
def test_every_format_can_send_it(name: str, format: str) -> None:
    message = render_result(format, "call", ToolResult(True, ODD[name]), name="odd")
    plain(json.dumps(message, allow_nan=False).encode())


@pytest.mark.parametrize("name", ODD)
def test_the_command_line_prints_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_json(ToolResult(True, ODD[name]).to_json())
    assert plain(capsys.readouterr().out)["success"]


def test_numbers_that_json_lacks_are_told_by_name() -> None:
    told = ["NaN", "Infinity", {"a": "-Infinity"}]
    assert as_json(ODD["not a number"]) == told
    assert plain(json_bytes(ODD["not a number"])) == told


async def test_a_number_that_json_lacks_is_not_null_to_an_output_schema() -> None:
    with pytest.raises(InvalidOutputError, match='"NaN" is not'):
        OutputCheck({"type": ["number", "null"]}, "mean")(as_json(float("nan")))

    @tool(returns={"type": ["number", "null"]})
    async def mean() -> float:
        """Divide by nothing."""
        return float("nan")

    result = await ToolRegistry([mean]).execute("mean")
    assert (result.success, result.error_code) == (False, "invalid_output")


def test_a_problem_is_answered_whatever_its_text_holds() -> None:
    answer = problem_answer(StoreError("half \ud800 of a pair"))
    assert plain(bytes(answer.body))["detail"] == "half ? of a pair"


DAMAGED: dict[str, tuple[bytes, type[StoreError], str]] = {
    "emptied": (b"", StoreError, "holds nothing, so something has emptied it"),
    "only a mark": (b"\xef\xbb\xbf", StoreError, "is not JSON"),
    "a wrong entry": (b'[{"name": "x"}]', StoreEntryError, r"entry 0 of .*'x'.*'description'"),
    "no entry": (b"[1]", StoreEntryError, "entry 0 of .* is not an object"),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("scheme", ["json", "brain"])
def test_a_damaged_file_is_the_stores_fault_and_stays(tmp_path: Path, scheme: str, damage: str) -> None:
    content, kind, says = DAMAGED[damage]
    file = tmp_path / "tools.json"
    attempts: list[Callable[[], object]]
    with closing(open_catalogue(f"{scheme}://{file}")) as catalogue:
        file.write_bytes(content)
        attempts = [lambda: catalogue.get("x"), lambda: catalogue.query({}), lambda: catalogue.delete("x")]
        for attempt in attempts:
            with pytest.raises(kind, match=says) as caught:
                attempt()
            assert caught.value.answer.http >= 500
    assert file.read_bytes() == content


def test_a_file_that_is_not_there_is_an_empty_catalogue(tmp_path: Path) -> None:
    with closing(open_catalogue(f"json:///{tmp_path / 'tools.json'}")) as catalogue:
        assert len(catalogue) == 0


@pytest.mark.parametrize("damage", DAMAGED)
async def test_the_service_says_that_its_store_is_damaged(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "tools.json"
    environment = {
        "HOME": str(tmp_path),
        "TOOLCRIB_DATA_DIR": str(tmp_path / "data"),
        "TOOLCRIB_STORE": f"json:///{file}",
    }
    app = application_of(open_system(load_settings(environment, tmp_path)))
    async with lifespan(app):
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            assert (await client.get("/tools")).status_code == 200
            file.write_bytes(DAMAGED[damage][0])
            for path in ("/tools", "/tools/x", "/readyz"):
                answer = await client.get(path)
                assert answer.status_code >= 500, path
            assert str(file) in (await client.get("/tools/x")).json()["detail"]
