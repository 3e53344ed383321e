"""A real MongoDB replica set on loopback."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from tests.support.processes import Program, free_port, wait_for

ELECTION_TIMEOUT_MS = 3000
"""Longer than a node of a busy machine is silent: secondaries that hear nothing depose a primary that is well."""
_ALREADY_INITIALIZED = 23


def find_mongod() -> Path | None:
    """The server in the test-only wheel."""
    package = find_spec("fiftyone")
    for folder in (package.submodule_search_locations or []) if package else []:
        binary = Path(folder) / "db" / "bin" / "mongod"
        if binary.is_file():
            if not os.access(binary, os.X_OK):
                binary.chmod(binary.stat().st_mode | 0o111)
            return binary
    return None


def start_mongod(mongod: Path, folder: Path, port: int, *arguments: str) -> Program:
    """Start a server with its data in ``folder``, and wait until it answers."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [str(mongod), "--port", str(port), "--bind_ip", "127.0.0.1", "--dbpath", str(folder), *arguments]
    command += ["--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"]
    command += ["--setParameter", "diagnosticDataCollectionEnabled=false"]
    program = Program(command, folder.with_suffix(".log"))
    wait_for(lambda: _ask(port, "ping"), program, swallow=(PyMongoError,))
    return program


class MongoCluster:
    """A replica set whose nodes can be killed and restarted; use it as a context manager."""

    def __init__(self, mongod: Path, folder: Path, nodes: int = 3) -> None:
        self._mongod = mongod
        self._folder = folder
        self.ports = [free_port() for _ in range(nodes)]
        self._programs: dict[int, Program] = {}

    @property
    def url(self) -> str:
        return f"mongodb://{','.join(self.members)}/?replicaSet=rs0"

    @property
    def members(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    def __enter__(self) -> Self:
        try:
            for node in range(len(self.ports)):
                self.restart(node)
            wait_for(self._initiate, *self._programs.values(), swallow=(PyMongoError,))
            self.wait_for_primary()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for program in self._programs.values():
            program.kill()

    def kill(self, node: int) -> None:
        """kill -9, as a power cut would."""
        self._programs[node].kill()

    def kill_primary(self) -> int:
        node = self.wait_for_primary()
        self.kill(node)
        return node

    def restart(self, node: int) -> None:
        """Start a node that is not running, and wait until it answers."""
        folder, port = self._folder / f"node{node}", self.ports[node]
        self._programs[node] = start_mongod(self._mongod, folder, port, "--replSet", "rs0")

    def heal(self) -> None:
        """Restart what is dead and wait until every node has caught up."""
        for node, program in self._programs.items():
            if not program.alive:
                self.restart(node)
        wait_for(self._whole, timeout=90, swallow=(PyMongoError,))

    def wait_for_primary(self, timeout: float = 60) -> int:
        return wait_for(self._primary, timeout=timeout, swallow=(PyMongoError,)) - 1

    def _initiate(self) -> bool:
        """Found the replica set; a busy node may miss the first question, and an answer may get lost."""
        try:
            self._ask(0, "replSetInitiate", self._config())
        except OperationFailure as error:
            if error.code != _ALREADY_INITIALIZED:
                raise
        return True

    def _primary(self) -> int:
        """The primary's number counted from one, zero for none."""
        for node, program in self._programs.items():
            if program.alive and self._ask(node, "hello")["isWritablePrimary"]:
                return node + 1
        return 0

    def _whole(self) -> bool:
        states = [member["stateStr"] for member in self._ask(0, "replSetGetStatus")["members"]]
        return sorted(states) == ["PRIMARY", *["SECONDARY"] * (len(states) - 1)] and self._primary() > 0

    def _config(self) -> dict[str, Any]:
        members = [{"_id": node, "host": host} for node, host in enumerate(self.members)]
        return {"_id": "rs0", "members": members, "settings": {"electionTimeoutMillis": ELECTION_TIMEOUT_MS}}

    def _ask(self, node: int, command: str, value: Any = 1) -> dict[str, Any]:
        return _ask(self.ports[node], command, value)


def _ask(port: int, command: str, value: Any = 1) -> dict[str, Any]:
    client: MongoClient[dict[str, Any]]
    with MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=5000) as client:
        return client.admin.command(command, value)
