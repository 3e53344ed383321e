"""What the service is measured beside; the servers import it. The environment names the files that it reads."""

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from pydantic import BaseModel


class ToolEntry(BaseModel):
    tool_id: str
    tool_metadata: dict[str, Any] = {}
    tool_search_description: str = ""
    tool_tags: list[str] = []
    tool_type: str = ""
    tool_man_page_doc: str = ""
    tool_api_spec: dict[str, Any] = {}
    tool_custom_actions_dsl_map: dict[str, Any] = {}
    default_tool_usage_credentials: dict[str, Any] = {}
    tool_execution_mode: str = ""
    tool_policy_rule_uri: str = ""
    tool_source_code_link: str = ""
    tool_service_url: str = ""
    tool_system_function_rpc_id: str = ""
    tool_validation_policy_rule_uri: str = ""
    tool_validation_mode: str = ""


def _bare() -> Any:
    """The least an ASGI application can do: the same answer to everybody."""
    body = Path(os.environ["BENCH_BODY"]).read_bytes()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    content = {"type": "http.response.body", "body": body}

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send(start)
            await send(content)

    return application


def _fast() -> Any:
    """A minimal handler as most would write it."""
    from fastapi import FastAPI, HTTPException

    application = FastAPI()
    database = sqlite3.connect(os.environ["BENCH_ENTRIES"], check_same_thread=False)

    @application.get("/tools/{tool_id}")
    async def get_tool(tool_id: str) -> ToolEntry:
        row = database.execute("select entry from entries where id = ?", (tool_id,)).fetchone()
        if row is None:
            raise HTTPException(404)
        return ToolEntry(**json.loads(row[0]))

    return application


def __getattr__(name: str) -> Any:
    """``bare`` and ``fast``: each is made only by the server that asks for it."""
    if name == "bare":
        return _bare()
    if name == "fast":
        return _fast()
    raise AttributeError(name)
