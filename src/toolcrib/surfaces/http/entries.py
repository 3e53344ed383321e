"""Tools as the HTTP doors show them: under the address that the service has now, with what says which version it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.catalogue import Entry
from toolcrib.formats.bundle import under_address
from toolcrib.formats.toolentry import document_to_entry


def shown(document: Mapping[str, Any], public_url: str) -> dict[str, Any]:
    """The ToolEntry of a document. A link to a bundle is built here, from the address of today if there is one."""
    entry = document_to_entry(document)
    if public_url:
        entry["tool_source_code_link"] = under_address(entry["tool_source_code_link"], public_url)
    return entry


def entry_headers(entry: Entry) -> dict[str, str]:
    """Which version this is, and since when the tool is what it is."""
    return {"etag": f'"{entry.etag}"', **definition_headers(entry)}


def definition_headers(entry: Entry) -> dict[str, str]:
    return {
        "toolcrib-definition-version": str(entry.definition_version),
        "toolcrib-definition-digest": entry.definition_digest,
    }
