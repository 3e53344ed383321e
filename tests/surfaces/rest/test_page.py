"""The catalogue's page, read in a real browser."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect
from tests.surfaces.http.running import RunningService


@pytest.fixture
async def page(tmp_path: Path, chromium_path: str) -> AsyncIterator[Page]:
    """The page of a service with samples; anything it complains of fails the test."""
    complaints: list[str] = []
    with RunningService(tmp_path, "--sample") as service:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=chromium_path, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            )
            opened = await browser.new_page(base_url=service.url)
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
