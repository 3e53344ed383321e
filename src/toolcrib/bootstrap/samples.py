"""The tools that come with Toolcrib, as a first catalogue."""

from __future__ import annotations

from toolcrib.catalogue import Catalogue
from toolcrib.core.spec import ToolSpec


def sample_specs() -> list[ToolSpec]:
    """The scraping tools and the browser tools."""
    from toolcrib.toolsets.browser import browser_specs
    from toolcrib.toolsets.scraping.specs import scraping_specs

    return list(({spec.name: spec for spec in browser_specs()} | scraping_specs()).values())


def seed_samples(catalogue: Catalogue) -> int:
    """Publish the samples into an empty catalogue; how many that were."""
    return 0 if len(catalogue) else len(catalogue.publish_many(sample_specs(), principal="samples"))
