"""The catalogue's page, read in a real browser."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, async_playwright, expect
from tests.support.waiting import PATIENCE
from tests.surfaces.http.running import RunningService


@pytest.fixture
async def page(tmp_path: Path, chromium_path: str) -> AsyncIterator[Page]:
    """The page of a service with samples; anything it complains of fails the test."""
    complaints: list[str] = []
    expect.set_options(timeout=PATIENCE * 1000)
    with RunningService(tmp_path, "--sample") as service:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=chromium_path,
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
                timeout=PATIENCE * 1000,
            )
            opened = await browser.new_page(base_url=service.url)
            opened.set_default_timeout(PATIENCE * 1000)
            opened.on("console", lambda message: complaints.append(message.text))
            opened.on("pageerror", lambda error: complaints.append(str(error)))
            opened.on(
                "request", lambda asked: None if asked.url.startswith(service.url) else complaints.append(asked.url)
            )
            yield opened
            await browser.close()
    assert complaints == []


async def test_a_tool_is_found_and_read(page: Page) -> None:
    await page.goto("/")
    await expect(page.locator("#tools li").first).to_be_visible()
    everything = await page.locator("#tools li").count()
    assert everything > 20

    await page.get_by_label("Find a tool").fill("html parsing")
    await expect(page.locator("#tools li")).not_to_have_count(everything)
    await expect(page.locator("#tools li b", has_text="beautifulsoup4")).to_be_visible()

    await page.get_by_text("beautifulsoup4", exact=True).click()
    article = page.locator("#tool")
    await expect(article.get_by_role("heading", name="beautifulsoup4")).to_be_visible()
    await expect(article.get_by_role("link", name="playwright", exact=True)).to_be_visible()
    await article.get_by_label("Format").select_option("openai")
    await expect(article.locator("pre").first).to_contain_text('"type": "function"')


async def test_a_type_narrows_the_list(page: Page) -> None:
    await page.goto("/#playwright")
    await expect(page.locator("#tool").get_by_role("heading", name="playwright")).to_be_visible()
    await page.get_by_label("Type of tool").select_option("parser")
    await expect(page.locator("#tools li b", has_text="parsel")).to_be_visible()
    await expect(page.locator("#tools li b", has_text="playwright")).to_have_count(0)


async def test_the_tool_that_was_chosen_last_is_shown(page: Page) -> None:
    """Although the answer about the one before comes later."""
    asked, late = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await late.wait()
        await route.continue_()

    await page.route("**/tools/parsel", hold)
    await page.goto("/#parsel")
    await asyncio.wait_for(asked.wait(), PATIENCE)
    await page.evaluate("location.hash = 'playwright'")
    heading = page.locator("#tool").get_by_role("heading", level=2)
    await expect(heading).to_have_text("playwright")
    async with page.expect_event("requestfinished", lambda request: request.url.endswith("/tools/parsel")):
        late.set()
    await page.evaluate("fetch('/healthz').then(answer => answer.json())")  # by now the page has read the answer
    assert await heading.inner_text() == "playwright"
