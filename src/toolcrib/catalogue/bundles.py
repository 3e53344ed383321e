"""Uploaded bundles: the code goes to the blobs under its digest, then the tool into the catalogue.

In this order a crash leaves at worst a blob that no tool names, which :func:`collect_orphans` removes later; never a
tool whose code is missing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.catalogue.cleaning import has_users
from toolcrib.catalogue.creator import checked_spec
from toolcrib.catalogue.entries import Entry
from toolcrib.catalogue.finding import matching_records
from toolcrib.core.errors import ToolcribError, UnavailableError
from toolcrib.core.query import ALL, parse
from toolcrib.core.roles import Who
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.bundle import Bundle, BundleLimits, blob_key, bundle_digest, read_bundle
from toolcrib.formats.toolentry import entry_to_spec
from toolcrib.ports import Blobs, Record, Store

ORPHAN_SECONDS = 24 * 3600
"""How long a blob may lie there without a tool that names it: longer than any upload takes."""


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
    anything is written if the name is taken and ``replace`` is false.
    """
    with path.open("rb") as file, tempfile.TemporaryFile(dir=path.parent) as code:
        bundle = read_bundle(file, code, limits)
        spec = bundle_spec(bundle, link_for(bundle.digest))
        if not replace and spec.name in catalogue:
            catalogue.refuse_taken(spec.name, principal=principal)
        key = blob_key(bundle.digest)
        known = blobs.open(key) is not None
        blobs.put(key, code)
        try:
            entry = catalogue.publish(spec, replace=replace, force=force, principal=principal)
        except UnavailableError:
            raise  # nobody knows whether it was written, so the code stays until it is certainly an orphan
        except ToolcribError:
            if not known and not has_users(spec.binding.source_code_link, catalogue.store):
                blobs.delete(key)
            raise
        if blobs.open(key) is None:  # somebody deleted the last tool with the same code meanwhile
            code.seek(0)
            blobs.put(key, code)
        return entry


def bundle_spec(bundle: Bundle, link: str) -> ToolSpec:
    """The spec parser: ``spec.json``, with the manual and the code's address filled in."""
    entry = {**bundle.entry, "tool_man_page_doc": bundle.manual, "tool_source_code_link": link}
    return checked_spec(entry_to_spec(entry))


def remove_bundle(blobs: Blobs) -> Callable[[ToolSpec], None]:
    """A cleanup for :class:`Catalogue`: the code of a deleted tool goes with it."""

    def remove(spec: ToolSpec) -> None:
        digest = bundle_digest(spec.binding.source_code_link)
        if digest is not None:
            blobs.delete(blob_key(digest))

    return remove


def collect_orphans(
    blobs: Blobs, store: Store, *, older_than: float = ORPHAN_SECONDS, clock: Callable[[], float] = time.time
) -> list[str]:
    """Remove the blobs that no tool names, in any version that can be restored; their keys.

    Only those that have not been written for ``older_than`` seconds: putting a blob renews its age, and the tools are
    read after the ages, so an upload under way is never hit.
    """
    limit = clock() - older_than
    orphans = {key for key, at in list(blobs.keys()) if at < limit}
    for records in (_with_bundles, _every_version):  # the second reads all there is, so only if there is a need
        if orphans:
            orphans -= {blob_key(digest) for digest in map(_digest, records(store)) if digest}
    for key in orphans:
        blobs.delete(key)
    return sorted(orphans)


def _with_bundles(store: Store) -> Iterator[Record]:
    return matching_records(store, parse({"binding.source_code_link": {"$ne": ""}}))


def _every_version(store: Store) -> Iterator[Record]:
    for record in matching_records(store, ALL):
        yield from store.history(record.name)


def _digest(record: Record) -> str | None:
    return bundle_digest((record.document or {}).get("binding", {}).get("source_code_link", ""))
