"""Bundles as users upload them."""

import io
import json
import os
import zipfile
from typing import Any

SPEC: dict[str, Any] = {
    "tool_id": "tool-123",
    "tool_type": "extractor",
    "tool_tags": ["nlp", "text"],
    "tool_search_description": "This is a large language model tool.",
    "tool_metadata": {"language": "en", "version": "1.0.0"},
    "tool_api_spec": {
        "input": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "output": {"type": "object"},
    },
    "tool_execution_mode": "batch",
    "tool_policy_rule_uri": "policies://validate/compliance",
}
MANUAL = "# tool-123\n\nExtracts names.\n"


def code_zip(content: bytes = b"print('hello')\n") -> bytes:
    return zipped({"code/function.py": content})


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return buffer.getvalue()


def bundle(spec: dict[str, Any] | None = None, code: bytes | None = None, manual: str = MANUAL) -> bytes:
    return zipped(
        {
            "spec.json": json.dumps(SPEC if spec is None else spec).encode(),
            "tool.zip": code_zip() if code is None else code,
            "tool.md": manual.encode(),
        }
    )


def large_code(size: int) -> bytes:
    return zipped({"code/data.bin": os.urandom(size)})
