"""Keys from the command line."""

from pathlib import Path

from tests.surfaces.cli.conftest import Cli

from toolcrib.adapters.sealing import AesGcmSeal
from toolcrib.bootstrap import open_catalogue
from toolcrib.core.spec import ToolSpec
from toolcrib.settings import load_settings


def test_a_new_key_can_be_used(cli: Cli) -> None:
    AesGcmSeal([cli("keys", "new").out.strip()])


def test_rotating_seals_everything_again_while_a_service_runs(cli: Cli, home: Path) -> None:
    running = open_catalogue()
    running.publish(ToolSpec(name="a", description="d", credentials={"key": "hunter2"}))
    running.publish(ToolSpec(name="b", description="d"))
    before = running.store.get("a")
    answer = cli("keys", "rotate")
    assert (answer.status, answer.out) == (0, "sealed the credentials of 1 tool again\n")
    after = running.store.get("a")
    assert before is not None
    assert after is not None
    assert before.document["credentials"]["key"].split(":")[1] != after.document["credentials"]["key"].split(":")[1]
    assert running.credentials("a") == {"key": "hunter2"}
    running.delete("a")
    running.restore("a", 1)
    assert running.credentials("a") == {"key": "hunter2"}  # sealed with the old key, which is kept
    running.close()
    assert len((load_settings().data_folder / "keys/seal.key").read_text().split()) == 2
