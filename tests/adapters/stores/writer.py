"""Programs that add tools to a store and say each name once it is acknowledged.

``python -m tests.adapters.stores.writer KIND PATH PROGRAMS COUNT``: PROGRAMS processes, each adding COUNT tools.
"""

import os
import sys

from tests.adapters.stores.specs import tool

from toolcrib.adapters.stores.json_file import JsonFileStore
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.ports import Change, Store


def write(kind: str, path: str, prefix: str, count: int) -> None:
    store: Store = {"json": JsonFileStore, "sqlite": SqliteStore}[kind](path)
    for number in range(count):
        name = f"{prefix}-{number:05d}"
        document = tool(name, tags=[prefix], manual="m" * 500)
        store.commit([Change(name, document, expected=None, event={"name": name})])
        os.write(1, f"{name}\n".encode())
    store.close()


def main(kind: str, path: str, programs: str, count: str) -> int:
    children = []
    for number in range(int(programs)):
        child = os.fork()
        if child == 0:
            write(kind, path, f"p{number}-{os.getpid()}", int(count))
            os._exit(0)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] for child in children)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[2] == "1":  # in this process, which the test kills
        write(arguments[0], arguments[1], f"p-{os.getpid()}", int(arguments[3]))
    else:
        sys.exit(main(*arguments))
