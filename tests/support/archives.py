"""Bundles, good and bad, built byte by byte where a library would refuse to."""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

SPEC: dict[str, Any] = {
    "tool_id": "agentspace.commit-scribe.v4",
    "tool_search_description": "Writes commit messages.",
    "tool_tags": ["git", "text"],
    "tool_type": "generator",
    "tool_metadata": {"version": "v4"},
    "tool_api_spec": {
        "entrypoints": {
            "execute": {
                "description": "Write one.",
                "input": {"type": "object", "properties": {"diff": {"type": "string"}}, "required": ["diff"]},
                "output": {"type": "object"},
            }
        }
    },
    "tool_execution_mode": "local_code",
    "tool_policy_rule_uri": "policy://agentspace/commit-scribe@v3",
    "tool_validation_mode": "none",
}


def zipped(members: Mapping[str, bytes | str] | list[tuple[str, bytes | str]]) -> bytes:
    pairs = members.items() if isinstance(members, Mapping) else members
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in pairs:
            member = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))  # the same bytes whenever it is built
            member.external_attr = 0o600 << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def python_code(function: str = "class AgentSpaceV1Tool: ...\n", **more: str) -> bytes:
    return zipped({"code/function.py": function, **more})


def bundle(
    spec: Any = SPEC, code: bytes | None = None, manual: bytes | str = "# Manual\n", **more: bytes | str
) -> bytes:
    members: dict[str, bytes | str] = {
        "spec.json": spec if isinstance(spec, bytes | str) else json.dumps(spec),
        "tool.zip": python_code() if code is None else code,
        "tool.md": manual,
        **more,
    }
    return zipped(members)


def member(
    name: bytes,
    content: bytes = b"x",
    *,
    mode: int = 0o100644,
    flags: int = 0,
    method: int = 0,
    size: int | None = None,
    packed: bytes | None = None,
) -> dict[str, Any]:
    packed = content if packed is None else packed
    return {
        "name": name, "mode": mode, "flags": flags, "method": method, "crc": zlib.crc32(content),
        "size": len(content) if size is None else size, "packed": packed,
    }  # fmt: skip


def raw_zip(members: list[dict[str, Any]], *, shared_offset: bool = False, claimed_count: int | None = None) -> bytes:
    """An archive without any of the library's checks. ``shared_offset``: every member points at the first."""
    body, directory = b"", b""
    for entry in members:
        offset = 0 if shared_offset else len(body)
        sizes = struct.pack("<III", entry["crc"], len(entry["packed"]), entry["size"])
        common = struct.pack("<HHHHH", 20, entry["flags"], entry["method"], 0, 33) + sizes
        if not shared_offset or not body:
            body += b"PK\x03\x04" + common + struct.pack("<HH", len(entry["name"]), 0) + entry["name"] + entry["packed"]
        directory += b"PK\x01\x02" + struct.pack("<H", 0x0314) + common
        directory += struct.pack("<HHHHHII", len(entry["name"]), 0, 0, 0, 0, entry["mode"] << 16, offset)
        directory += entry["name"]
    count = len(members) if claimed_count is None else claimed_count
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + end
