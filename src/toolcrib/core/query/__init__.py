"""The filter language: MongoDB's, on JSON documents.

``parse({"tags": "web", "metadata.stars": {"$gte": 3}})`` is a :class:`Filter`; ``filter.matches(document)`` is its
meaning, and every store gives the same answer. Field names are those of :class:`toolcrib.core.spec.ToolSpec`; other
names are translated with :func:`rename`.
"""

from toolcrib.core.query.filters import ALL, NOTHING, And, At, Compare, Filter, Like, Not, OneOf, Or, Path, Test
from toolcrib.core.query.parsing import FORBIDDEN, parse
from toolcrib.core.query.patterns import Pattern
from toolcrib.core.query.renaming import rename

__all__ = [
    "ALL", "FORBIDDEN", "NOTHING", "And", "At", "Compare", "Filter", "Like", "Not", "OneOf", "Or", "Path", "Pattern",
    "Test", "parse", "rename",
]  # fmt: skip
