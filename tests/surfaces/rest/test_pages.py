"""The pages in a real browser that reaches nothing but the service."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect, sync_playwright
from tests.support.waiting import PATIENCE
from tests.surfaces.http.running import RunningService

pytestmark = pytest.mark.xdist_group("service-process")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with RunningService(tmp_path_factory.mktemp("pages")) as running:
        with running.client() as client:
            for number in range(3):
                entry = {"tool_id": f"t{number}", "tool_tags": ["parser"]}
                assert client.post("/tools", json=entry).status_code == 201
        yield running


@pytest.fixture(scope="module")
def page(service: RunningService, chromium_path: str) -> Any:
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path, args=["--no-sandbox"], timeout=PATIENCE * 1000
        )
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        elsewhere: list[str] = []

        def only_here(route: Route) -> None:
            if route.request.url.startswith(service.url):
                route.continue_()
            else:
                elsewhere.append(route.request.url)
                route.abort()

        page.route("**/*", only_here)
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        yield page
        browser.close()
    assert elsewhere == []
    assert problems == []


@pytest.mark.parametrize("path", ["/", "/docs", "/graphql"])
def test_a_page_brings_its_icon(service: RunningService, page: Page, path: str) -> None:
    """The browser draws it under the page's own policy, and asks the service for none."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{service.url}{path}", wait_until="networkidle")
    icon = page.locator("link[rel=icon]").get_attribute("href")
    assert icon is not None
    assert icon.startswith("data:image/svg+xml,")
    drawn = """href => new Promise(done => {
        const image = new Image(); image.onload = () => done(image.width); image.onerror = () => done(0);
        image.src = href;
    })"""
    assert page.evaluate(drawn, icon) > 0
    assert [url for url in asked if "favicon" in url] == []


def test_graphiql_runs_a_query_and_shows_the_schema(service: RunningService, page: Page, tmp_path: Path) -> None:
    page.goto(f"{service.url}/graphql")
    assert "GraphiQL" in page.title()
    expect(page.locator("#schema")).to_contain_text("tool_search_description")
    page.fill("#query", 'query($t: String) { tools(query: { tool_tags: "parser", tool_id: $t }) { tool_id } }')
    page.fill("#variables", '{"t": "t1"}')
    page.click("#run")
    expect(page.locator("#result")).to_contain_text("t1")
    assert '"t2"' not in page.inner_text("#result")
    page.fill("#variables", "{")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("not JSON")
    page.screenshot(path=tmp_path / "graphiql.png")


def test_docs_lists_every_operation_and_sends_requests(service: RunningService, page: Page, tmp_path: Path) -> None:
    page.goto(f"{service.url}/docs")
    page.wait_for_selector("#get_tool")
    with service.client() as client:
        described = client.get("/openapi.json").json()
    operations = [said["operationId"] for methods in described["paths"].values() for said in methods.values()]
    assert all(page.locator(f"#{name}").count() == 1 for name in operations)
    page.click("#get_tool summary")
    page.fill("#get_tool input[data-name=tool_id]", "t2")
    page.click("#get_tool button")
    expect(page.locator("#get_tool pre")).to_contain_text('"tool_id": "t2"')
    page.screenshot(path=tmp_path / "docs.png")
