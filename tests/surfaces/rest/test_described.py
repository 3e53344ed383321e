"""The OpenAPI description is complete and true: schemathesis finds nothing that is not in it, and no 500."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from tests.surfaces.http.running import RunningService

from toolcrib.surfaces.service import ENDPOINTS

pytestmark = pytest.mark.xdist_group("service-process")


CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with RunningService(tmp_path_factory.mktemp("described"), "--sample") as running:
        yield running


async def test_the_description_is_openapi_and_complete(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()
    assert described["openapi"] == "3.1.0"
    paths = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert paths == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    operations = [said for methods in described["paths"].values() for said in methods.values()]
    assert len({said["operationId"] for said in operations}) == len(operations)
    for schema in described["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)
    text = json.dumps(described)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for said in methods.values():
            named = {p["name"] for p in said.get("parameters", ()) if p["in"] == "path"}
            assert all(f"{{{name}}}" in path for name in named)
            assert path.count("{") == len(named)


@pytest.mark.timeout(400)
def test_whatever_is_asked_nothing_breaks(service: RunningService, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")), "run", f"{service.url}/openapi.json",
            "--phases", "examples,coverage,fuzzing", "--mode", "all", "--max-examples", "8", "--seed", "7",
            "--checks", CHECKS, "--request-timeout", "120",
            "--generation-database", "none", "--no-color", "--warnings", "off",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=360, check=False,
    )  # fmt: skip
    counted = re.search(r"(\d+) generated", done.stdout)
    print(done.stdout[-1500:])
    assert done.returncode == 0, done.stdout[-5000:]
    assert counted is not None
    assert int(counted.group(1)) > 500
    assert '"level": "error"' not in service.log_text()
