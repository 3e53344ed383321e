"""Every kind of store that keeps whole specs, by its address. A new backend is one line."""

from collections.abc import Callable
from pathlib import Path

STORES: dict[str, Callable[[Path, Callable[[], str]], str]] = {
    "memory": lambda folder, mongo: "memory:",
    "json": lambda folder, mongo: f"json:///{folder}/tools.json",
    "sqlite": lambda folder, mongo: f"sqlite:///{folder}/tools.db",
    "mongo": lambda folder, mongo: mongo(),
}
"""From a folder of its own, and what gives the address of a MongoDB database, to the address of a fresh store."""
