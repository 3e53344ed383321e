"""The two tables of a ToolsDB, for people with ``mongosh``: views of the current tools by the fields of its record.

They show what the doors show: an interface that follows from the schemas, and credentials by name only. A key that
begins with a dollar sign is shown as it is kept (see :func:`toolcrib.adapters.stores.mongo_filter.encode`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pymongo.errors import OperationFailure

from toolcrib.adapters.mongo import NAMESPACE_EXISTS, Document
from toolcrib.core.json import MASK
from toolcrib.formats.toolentry import FIELD_PATHS, TOOL_EXECUTION

if TYPE_CHECKING:
    from pymongo.database import Database

_log = logging.getLogger(__name__)
_ID, _INTERFACE, _CREDENTIALS = "tool_id", "tool_api_spec", "default_tool_usage_credentials"
_NOTHING: Document = {"$literal": {}}


def make_views(database: Database[Document], tools: str) -> None:
    """Make ``tool_data`` and ``tool_execution`` over the collection ``tools``, or bring them up to date."""
    there = {found["name"]: found for found in database.list_collections(filter={"name": {"$in": list(_VIEWS)}})}
    for name, pipeline in _VIEWS.items():
        found = there.get(name)
        if found is None:
            _make(database, name, tools, pipeline)
        elif found["type"] != "view":
            _log.warning("%r is a collection of somebody else here, so there is no view of that name", name)
        elif (found["options"]["viewOn"], found["options"]["pipeline"]) != (tools, pipeline):
            database.command("collMod", name, viewOn=tools, pipeline=pipeline)


def _make(database: Database[Document], name: str, tools: str, pipeline: list[Document]) -> None:
    try:
        database.create_collection(name, check_exists=False, viewOn=tools, pipeline=pipeline)
    except OperationFailure as error:
        if error.code != NAMESPACE_EXISTS:  # another process was quicker
            raise


def _view(fields: list[str]) -> list[Document]:
    shown = {field: _SHOWN.get(field, f"$document.{FIELD_PATHS[field]}") for field in fields}
    return [{"$project": {"_id": 0, **shown}}]


def _masked(credentials: str) -> Document:
    names: Document = {"input": {"$objectToArray": credentials}, "as": "one"}
    return {"$arrayToObject": {"$map": {**names, "in": {"k": "$$one.k", "v": {"$literal": MASK}}}}}


def _if(condition: Any, then: Any, otherwise: Any) -> Document:
    return {"$cond": [condition, then, otherwise]}


_SAYS_NOTHING: Document = {
    "$and": [
        {"$eq": [{"$ifNull": ["$document.parameters.properties", _NOTHING]}, _NOTHING]},
        {"$eq": [{"$ifNull": ["$document.returns", _NOTHING]}, _NOTHING]},
    ]
}
_SHOWN: dict[str, Any] = {
    _ID: "$_id",
    _INTERFACE: _if(
        {"$ne": [{"$ifNull": ["$document.api_spec", _NOTHING]}, _NOTHING]},
        "$document.api_spec",
        _if(_SAYS_NOTHING, _NOTHING, {"input": "$document.parameters", "output": "$document.returns"}),
    ),
    _CREDENTIALS: _masked("$document.credentials"),
}
_VIEWS: dict[str, list[Document]] = {
    "tool_data": _view([field for field in FIELD_PATHS if field not in TOOL_EXECUTION]),
    "tool_execution": _view([_ID, *TOOL_EXECUTION]),
}
