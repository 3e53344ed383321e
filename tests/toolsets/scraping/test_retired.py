"""Tools of the samples that nobody keeps up any more."""

from __future__ import annotations

import pytest

from toolcrib.core.errors import ToolValidationError
from toolcrib.toolsets.scraping import BRICKS, make_pipeline, scraping_specs

RETIRED = {"undetected-chromedriver": "selenium", "cloudscraper": "curl_cffi"}


@pytest.mark.parametrize("name", RETIRED)
async def test_a_pipeline_that_names_one_is_told_what_to_use_instead(name: str) -> None:
    pipeline = make_pipeline((name, {"headless": True}), ("parsel", {"selectors": {"a": "b"}}))
    [problem] = pipeline.check().problems
    assert problem.startswith(f"{name!r} is no longer kept up (its last release, ")
    assert problem.endswith(f"; use {RETIRED[name]!r} instead")
    with pytest.raises(ToolValidationError, match=f"use '{RETIRED[name]}' instead"):
        await pipeline.run(["http://127.0.0.1:1/"])


@pytest.mark.parametrize("name", RETIRED)
async def test_one_that_stands_in_is_told_too(name: str) -> None:
    pipeline = make_pipeline("httpx", error_handling={"403_error": {"retry_with_actor": name}})
    assert [problem.partition(" ")[0] for problem in pipeline.check().problems] == [repr(name)]


@pytest.mark.parametrize("name", RETIRED)
def test_the_entry_says_so(name: str) -> None:
    spec = scraping_specs()[name]
    assert (spec.deprecated, spec.replaced_by) == (True, RETIRED[name])
    assert spec.description.startswith(f"No longer kept up; use {RETIRED[name]!r}.")
    assert spec.metadata["retired"]["last_release"]
    assert not scraping_specs()[RETIRED[name]].deprecated
    assert RETIRED[name] in BRICKS
