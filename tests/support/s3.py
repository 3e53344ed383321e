"""A real S3 server on loopback: Ceph's gateway if it is installed, SeaweedFS otherwise."""

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import obstore
from obstore.store import S3Store

from tests.support.processes import Program, accepts, answers, free_port, run, wait_for

ACCESS_KEY = "toolcrib-tests"
SECRET_KEY = "a-secret-of-the-tests-only"
_TRIES = 5
CEPH_PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")


@dataclass(frozen=True)
class S3Server:
    kind: str
    endpoint: str
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    region: str = "us-east-1"

    def store(self, bucket: str) -> S3Store:
        return S3Store(
            bucket,
            endpoint=self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=self.region,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

    def create_bucket(self, name: str | None = None) -> str:
        """Make an empty bucket, with a fresh name unless one is given."""
        bucket = name or f"bucket-{uuid4().hex[:12]}"
        url = obstore.sign(self.store(bucket), "PUT", "", timedelta(minutes=1))
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT")):
            return bucket


def available_kinds() -> list[str]:
    """The servers this machine can start, best first."""
    found = {"ceph": all(map(shutil.which, CEPH_PROGRAMS)), "seaweedfs": _weed() is not None}
    return [kind for kind, present in found.items() if present]


@contextmanager
def s3_server(kind: str, folder: Path) -> Iterator[S3Server]:
    start = {"ceph": _start_ceph, "seaweedfs": _start_seaweedfs}[kind]
    for attempt in range(_TRIES):
        with ExitStack() as stack:
            try:
                endpoint = start(folder / str(attempt), stack)
            except (RuntimeError, TimeoutError, subprocess.TimeoutExpired):
                # On a busy machine Ceph's daemons may ask the monitor before they know its cluster, and give up.
                if attempt == _TRIES - 1:
                    raise
                continue
            yield S3Server(kind, endpoint)
            return


def _start_ceph(folder: Path, stack: ExitStack) -> str:
    """One monitor, one OSD in memory, one gateway; no authentication among them, they are alone on loopback."""
    monitor_port, gateway_port, fsid = free_port(), free_port(), str(uuid4())
    folder.mkdir()
    config = folder / "ceph.conf"
    config.write_text(
        CEPH_CONFIG.format(folder=folder, fsid=fsid, monitor=monitor_port, gateway=gateway_port), encoding="utf-8"
    )
    common = ["--conf", str(config)]

    def launch(*command: str) -> Program:
        program = Program([*command, *common, "--foreground"], folder / f"{command[0]}.log")
        stack.callback(program.kill)
        return program

    monmap = str(folder / "monmap")
    run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v1:127.0.0.1:{monitor_port}]", monmap)
    run("ceph-mon", "--mkfs", "--id", "a", "--monmap", monmap, *common)
    monitor = launch("ceph-mon", "--id", "a")
    wait_for(lambda: accepts(monitor_port), monitor)

    disk = str(uuid4())
    # A monitor accepts connections a moment before it leads, and a pool made before its OSD is up hangs for good.
    wait_for(lambda: run("ceph", *common, "osd", "new", disk), monitor, swallow=(OSError, RuntimeError))
    (folder / "osd").mkdir()
    run("ceph-osd", "--mkfs", "--id", "0", "--osd-uuid", disk, *common)
    storage = launch("ceph-osd", "--id", "0")
    wait_for(lambda: json.loads(run("ceph", *common, "osd", "stat", "-f", "json"))["num_up_osds"], monitor, storage)

    user = ["user", "create", "--uid=tests", "--display-name=tests"]
    run("radosgw-admin", *common, *user, f"--access-key={ACCESS_KEY}", f"--secret-key={SECRET_KEY}", timeout=40)
    gateway = launch("radosgw", "--name", "client.rgw")
    wait_for(lambda: accepts(gateway_port), gateway)
    return f"http://127.0.0.1:{gateway_port}"


def _start_seaweedfs(folder: Path, stack: ExitStack) -> str:
    folder.mkdir()
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
    }
    identities = folder / "s3.json"
    identities.write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    servers = ("master", "volume", "filer", "s3")
    ports = {name: free_port() for server in servers for name in (f"{server}.port", f"{server}.port.grpc")}
    command = [str(_weed()), "server", "-s3", f"-s3.config={identities}", f"-dir={folder}", "-volume.max=10000"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]  # fixed ports: a second server would die of them
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", *(f"-{name}={port}" for name, port in ports.items())]
    program = Program(command, folder / "weed.log")
    stack.callback(program.kill)
    wait_for(lambda: answers(f"http://127.0.0.1:{ports['master.port']}/dir/assign"), program)
    wait_for(lambda: all(map(accepts, ports.values())), program)
    return f"http://127.0.0.1:{ports['s3.port']}"


def _weed() -> Path | None:
    binary = Path(sys.executable).parent / "weed"
    return binary if binary.is_file() else None


CEPH_CONFIG = """\
[global]
fsid = {fsid}
mon host = v1:127.0.0.1:{monitor}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr2 = false
auth cluster required = none
auth service required = none
auth client required = none
run dir = {folder}
admin socket = {folder}/$name.$pid.asok
log file = /dev/null
mon cluster log file = /dev/null
crash dir = {folder}
paxos propose interval = 0.05
mon data = {folder}/mon
mon data avail crit = 1
mon allow pool size one = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 1073741824

[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{gateway}
rgw data = {folder}/rgw
rgw dns name = 127.0.0.1
"""
