"""Uploaded bundles: a reference, the code under its digest, the record of the tool, and the reference is given up.

In this order a crash leaves at worst code that no tool names, which the collector removes later, or a reference that
grows too old to count; never a tool whose code is missing. A failing upload takes nothing away: somebody else may be
about to name the same code.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.catalogue.code import referred
from toolcrib.catalogue.creator import checked_spec
from toolcrib.catalogue.entries import Entry
from toolcrib.core.errors import ToolcribError, disk_error
from toolcrib.core.roles import Who
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.bundle import Bundle, BundleLimits, blob_key, read_bundle
from toolcrib.formats.toolentry import entry_to_spec
from toolcrib.ports import Blobs


def ingest(
    path: Path,
    *,
    blobs: Blobs,
    catalogue: Catalogue,
    link_for: Callable[[str], str],
    replace: bool = False,
    force: bool = False,
    principal: Who = "",
    limits: BundleLimits | None = None,
) -> Entry:
    """Publish the bundle in the file at ``path``; ``link_for`` makes the address of the code from its digest.

    Raises InvalidBundleError and ToolValidationError for what is wrong with the bundle, ToolExistsError before
    anything is written if the name is taken and ``replace`` is false, StorageFullError if there is no room for it.
    """
    try:
        with path.open("rb") as file, tempfile.TemporaryFile(dir=path.parent) as code:
            bundle = read_bundle(file, code, limits)
            spec = bundle_spec(bundle, link_for(bundle.digest))
            if not replace and spec.name in catalogue:
                catalogue.refuse_taken(spec, principal=principal)
            with referred(blobs, bundle.digest):
                blobs.put(blob_key(bundle.digest), code)
                return catalogue.publish(spec, replace=replace, force=force, principal=principal)
    except ToolcribError:
        raise  # a refusal is an OSError as well
    except OSError as error:
        raise disk_error("the bundle cannot be unpacked", error) from error


def bundle_spec(bundle: Bundle, link: str) -> ToolSpec:
    """The spec parser: ``spec.json``, with the manual and the code's address filled in."""
    entry = {**bundle.entry, "tool_man_page_doc": bundle.manual, "tool_source_code_link": link}
    return checked_spec(entry_to_spec(entry))
