"""Who names a tool: the reason why it may not simply go."""

from __future__ import annotations

from typing import Any

from toolcrib.catalogue.finding import matching_records
from toolcrib.core.query import parse
from toolcrib.ports import Store


def users_of(name: str, store: Store) -> list[str]:
    """The tools that name this one: as their successor, as a partner they accept, or as a step of their pipeline.

    To refuse a tool (``incompatible_with``) is not to need it.
    """
    naming = [
        {"replaced_by": name},
        {"compatibilities": name},
        {"metadata.pipeline": name},
        {"metadata.pipeline.tool": name},
        {"metadata.pipeline.steps": name},
        {"metadata.pipeline.steps.tool": name},
        {"metadata.steps.tool": name},
    ]
    users = {record.name for record in store.query(parse({"$or": naming}))}
    # Actions are in the publisher's own words, so no filter can look into all of them.
    acting = matching_records(store, parse({"actions": {"$ne": {}}}))
    users |= {record.name for record in acting if _names_tool(record.document["actions"], name)}
    return sorted(users - {name})


def _names_tool(value: Any, name: str) -> bool:
    """Whether a ``tool`` somewhere inside is ``name``."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if node.get("tool") == name or (isinstance(node.get("tools"), list) and name in node["tools"]):
                return True
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False
