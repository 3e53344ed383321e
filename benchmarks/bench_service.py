"""The service over HTTP: reading one tool, uploading bundles, and the memory an upload takes.

`GET /tools/{id}` on SQLite with 100,000 tools of 1.6 KB, one worker each, `wrk -c64` asking for tools at random, beside

- a bare ASGI application on the same server that returns the same bytes: the limit;
- a minimal FastAPI handler with a typed model on uvicorn and SQLite: what most would write.

All three run in turn in every round, and the medians are shown. Run: make bench, or
.venv-bench/bin/python benchmarks/bench_service.py [--tools N] [--rounds N] [--upload-megabytes N]
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from table import print_table

CONNECTIONS = 64
WORDS = ("extract", "parse", "fetch", "convert", "index", "classify", "image", "text", "table", "agent", "batch")


def sample_tool(number: int) -> dict[str, object]:
    """About 1.6 KB as it is stored."""
    words = [WORDS[(number * 7 + step * 3) % len(WORDS)] for step in range(12)]
    return {
        "name": f"tool-{number}",
        "description": f"Tool {number}: " + " ".join(words),
        "tool_type": ("extractor", "inference", "monitor", "parser")[number % 4],
        "tags": [WORDS[number % len(WORDS)], WORDS[number % 5]],
        "execution_mode": ("sync", "async", "batch")[number % 3],
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What to work on."}},
            "required": ["text"],
        },
        "manual": "It takes a text and gives back what it found. " * 6,
        "metadata": {"owner": f"team-{number % 50}", "stars": number % 100},
    }


def fill(url: str, count: int) -> None:
    from toolcrib import ToolSpec
    from toolcrib.bootstrap import open_store
    from toolcrib.ports import Change

    store = open_store(url)
    for start in range(0, count, 5000):
        specs = [ToolSpec.parse(sample_tool(number)) for number in range(start, min(count, start + 5000))]
        store.commit([Change(spec.name, spec.to_dict(), expected=None) for spec in specs])
    store.close()


# Running


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, environment: dict[str, str], path: str) -> Iterator[int]:
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, cwd=Path(__file__).parent, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
                    answer.read()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise RuntimeError(f"{command[0]} did not start") from None
                time.sleep(0.1)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def cpu_seconds(group: int) -> float:
    """Processor time of all processes of a group, so far."""
    ticks = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


Measured = tuple[float, float, int, float]


def wrk(port: int, seconds: int, script: Path, group: int) -> Measured:
    """Requests a second, p99 in ms, how many were not answered with 200, and processor time in us a request."""
    before = cpu_seconds(group)
    text = subprocess.run(
        ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "--latency", "-s", str(script), f"http://127.0.0.1:{port}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)\b", text).groups()
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    socket_errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    errors = (int(bad.group(1)) if bad else 0) + sum(map(int, socket_errors.groups()) if socket_errors else ())
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    processor = (cpu_seconds(group) - before) / max(1, requests) * 1e6
    return rate, float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit], errors, processor


def reading(folder: Path, tools: int, rounds: int, seconds: int) -> None:
    url = f"sqlite:///{folder}/toolcrib.db"
    print(f"filling {tools} tools ...", flush=True)
    fill(url, tools)
    at_random, in_turn = folder / "random.lua", folder / "turn.lua"
    at_random.write_text(
        "math.randomseed(7)\nrequest = function() return wrk.format('GET', '/tools/tool-' .. "
        f"math.random(0, {tools - 1})) end\n"
    )
    in_turn.write_text(
        "number = -1\nrequest = function() number = number + 1; return wrk.format('GET', '/tools/tool-' .. "
        f"(number % {tools})) end\n"
    )
    entries = folder / "entries.db"
    with sqlite3.connect(entries) as database:
        from toolcrib import open_catalogue
        from toolcrib.formats.toolentry import document_to_entry

        catalogue = open_catalogue(url)
        database.execute("create table entries (id text primary key, entry text)")
        database.executemany(
            "insert into entries values (?, ?)",
            ((entry.name, json.dumps(document_to_entry(entry.document))) for entry in catalogue.entries()),
        )
        body = json.dumps(document_to_entry(catalogue.entry("tool-77").document), separators=(",", ":"))
        catalogue.close()
    (folder / "body").write_text(body)
    port = free_port()
    environment = {
        "TOOLCRIB_DATA_DIR": str(folder), "TOOLCRIB_STORE": url,
        "BENCH_BODY": str(folder / "body"), "BENCH_ENTRIES": str(entries),
    }  # fmt: skip
    bin_folder = Path(sys.executable).parent
    granian = [str(bin_folder / "granian"), "--interface", "asgi", "--loop", "asyncio", "--no-log", "--port", str(port)]
    uvicorn = [str(bin_folder / "uvicorn"), "--no-access-log", "--log-level", "error", "--port", str(port)]
    contestants = {
        "bare ASGI application, the same bytes": [*granian, "service_peers:bare"],
        "Toolcrib": [str(bin_folder / "toolcrib"), "serve", "--port", str(port)],
        "FastAPI with a typed model": [*uvicorn, "service_peers:fast"],
    }
    results: dict[str, list[Measured]] = {name: [] for name in contestants}
    results["Toolcrib, tools that nobody has read yet"] = []
    for _ in range(rounds):
        for name, command in contestants.items():
            with running(command, port, environment, "/tools/tool-1") as group:
                first = wrk(port, 2, in_turn, group)
                if name == "Toolcrib":
                    results["Toolcrib, tools that nobody has read yet"].append(first)
                    wrk(port, min(60, 2 + int(tools / first[0])), in_turn, group)  # now every tool has been read once
                results[name].append(wrk(port, seconds, at_random, group))
    rates = {name: statistics.median(rate for rate, *_ in measured) for name, measured in results.items()}
    ours = rates["Toolcrib"]
    print_table(
        f"`GET /tools/{{id}}`, {tools:,} tools on SQLite, one worker, wrk -c{CONNECTIONS}, {rounds} x {seconds} s",
        ["", "requests/s", "Toolcrib is", "p99 ms", "CPU us a request", "errors"],
        [
            [
                name, f"{rates[name]:,.0f}", f"{ours / rates[name]:.2f} x",
                f"{statistics.median(p99 for _, p99, *_ in measured):.1f}",
                f"{statistics.median(processor for *_, processor in measured):.0f}",
                str(sum(bad for _, _, bad, _ in measured)),
            ]
            for name, measured in results.items()
        ],
    )  # fmt: skip


def bundle(name: str, size: int) -> bytes:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("code/function.py", "class AgentSpaceV1Tool: ...\n")
        archive.writestr("code/data.bin", os.urandom(size))
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("spec.json", json.dumps({"tool_id": name, "tool_search_description": "a bundle"}))
        archive.writestr("tool.zip", code.getvalue())
        archive.writestr("tool.md", "# It works\n")
    return whole.getvalue()


def fsyncs_a_second(folder: Path) -> float:
    with (folder / "fsync").open("wb") as file:
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < 1:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            count += 1
    return count / (time.perf_counter() - started)


def memory_of(group: int) -> float:
    """Resident megabytes of all processes of a group."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            continue
    return total / 1e6


def uploading(folder: Path, megabytes: int, seconds: float) -> None:
    import http.client
    import threading

    port = free_port()
    environment = {"TOOLCRIB_DATA_DIR": str(folder / "uploads")}
    (folder / "uploads").mkdir()
    command = [str(Path(sys.executable).parent / "toolcrib"), "serve", "--port", str(port)]
    with running(command, port, environment, "/healthz") as group:
        limit = fsyncs_a_second(folder / "uploads")
        done = [0] * 8

        def upload(path_or_bytes: bytes | Path) -> int:
            boundary = "bench"
            head = (
                f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="b.zip"\r\n'
                "Content-Type: application/zip\r\n\r\n"
            ).encode()
            tail = f"\r\n--{boundary}--\r\n".encode()
            size = path_or_bytes.stat().st_size if isinstance(path_or_bytes, Path) else len(path_or_bytes)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            connection.putrequest("POST", "/tools/upload")
            connection.putheader("content-type", f"multipart/form-data; boundary={boundary}")
            connection.putheader("content-length", str(len(head) + size + len(tail)))
            connection.endheaders()
            connection.send(head)
            if isinstance(path_or_bytes, Path):
                with path_or_bytes.open("rb") as file:
                    while piece := file.read(1 << 20):
                        connection.send(piece)
            else:
                connection.send(path_or_bytes)
            connection.send(tail)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status

        def client(number: int, until: float) -> None:
            while time.perf_counter() < until:
                if upload(bundle(f"up-{number}-{done[number]}", 20_000)) == 200:
                    done[number] += 1

        until = time.perf_counter() + seconds
        threads = [threading.Thread(target=client, args=(number, until)) for number in range(len(done))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rate = sum(done) / seconds
        large = folder / "large.zip"
        large.write_bytes(bundle("large", megabytes * 1_000_000))
        time.sleep(1)
        idle, highest, stop = memory_of(group), 0.0, threading.Event()

        def watch() -> None:
            nonlocal highest
            while not stop.is_set():
                highest = max(highest, memory_of(group))
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        started = time.perf_counter()
        status = upload(large)
        took = time.perf_counter() - started
        stop.set()
        watcher.join()
    print_table(
        "Uploads: 8 clients with bundles of 20 KB, then one large bundle",
        ["", ""],
        [
            ["fsyncs of this disk, 1/s", f"{limit:,.0f}"],
            ["uploads, 1/s", f"{rate:,.1f}"],
            ["uploads per fsync", f"{rate / limit:.3f}"],
            [f"one bundle of {megabytes} MB, s", f"{took:.1f} (status {status})"],
            ["memory idle, MB", f"{idle:.0f}"],
            ["memory above idle during the upload, MB", f"{highest - idle:.0f}"],
        ],
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--tools", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=5)
    options.add_argument("--upload-megabytes", type=int, default=500)
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-service-"))
    try:
        if shutil.which("wrk"):
            reading(folder, given.tools, given.rounds, given.seconds)
        else:
            print("wrk is not installed, so reading is not measured")
        uploading(folder, given.upload_megabytes, given.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
