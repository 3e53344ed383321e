"""The captcha brick, against a local service that speaks createTask and getTaskResult."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from tests.toolsets.scraping.services import CAPTCHA_KEY, CaptchaService

from toolcrib.core.addresses import AddressRules, fence
from toolcrib.core.errors import MissingConfigError
from toolcrib.stacking import Page, Pipeline, Record, Request
from toolcrib.toolsets.scraping import make_pipeline
from toolcrib.toolsets.scraping.captcha import find_challenge
from toolcrib.toolsets.scraping.practice import Site, captcha


def past_the_captcha(client: str, service: CaptchaService, key: str = CAPTCHA_KEY) -> Pipeline:
    return make_pipeline(
        client,
        ("anticaptcha", {"endpoint": service.url, "poll_seconds": 0.01}),
        ("selectolax", {"selectors": {"heading": "h1"}}),
        secrets={"ANTICAPTCHA_KEY": key},
    )


@pytest.mark.parametrize("client", ["httpx", "playwright"])
async def test_the_page_behind_the_captcha_comes_out(
    client: str, site: Site, captcha_service: CaptchaService, chromium_path: str
) -> None:
    items = await past_the_captcha(client, captcha_service).collect([f"{site.url}/captcha", f"{site.url}/"])
    headings = [item.data["heading"] for item in items if isinstance(item, Record)]
    assert sorted(headings) == ["Bookshop", "You are not a robot"]
    assert captcha_service.calls[0] == (
        "/createTask",
        {
            "clientKey": CAPTCHA_KEY,
            "task": {
                "type": "RecaptchaV2TaskProxyless",
                "websiteURL": f"{site.url}/captcha",
                "websiteKey": "site-key-1",
            },
        },
    )


async def test_a_service_may_have_its_own_words(site: Site, captcha_service: CaptchaService) -> None:
    captcha_service.answer_field = "token"
    pipeline = make_pipeline(
        "httpx",
        ("anticaptcha", {"endpoint": captcha_service.url, "poll_seconds": 0.01, "task_types": {"g-recaptcha": "Mine"}}),
        ("selectolax", {"selectors": {"heading": "h1"}}),
        secrets={"ANTICAPTCHA_KEY": CAPTCHA_KEY},
    )
    notes: list[str] = []
    report = await pipeline.run([f"{site.url}/captcha"], on_progress=lambda progress: notes.append(progress.note))
    assert report.items == 1
    assert captcha_service.calls[0][1]["task"]["type"] == "Mine"
    assert notes[0] == "waiting for a captcha to be solved"


async def test_a_page_that_asks_again_and_again_is_a_failure(site: Site, captcha_service: CaptchaService) -> None:
    captcha_service.token = "wrong"
    report = await past_the_captcha("httpx", captcha_service).run([f"{site.url}/captcha"])
    assert report.failed == 1
    assert "asks for a captcha again after" in report.failures[0].reason


async def test_a_refusal_of_the_service_is_told(site: Site, captcha_service: CaptchaService) -> None:
    report = await past_the_captcha("httpx", captcha_service, "wrong").run([f"{site.url}/captcha"])
    assert "ERROR_KEY_DOES_NOT_EXIST" in report.failures[0].reason


async def test_behind_rules_the_service_is_judged(site: Site, captcha_service: CaptchaService) -> None:
    netloc = urlsplit(site.url).netloc
    with fence(AddressRules((netloc,), public_only=True)):
        report = await past_the_captcha("httpx", captcha_service).run([f"{site.url}/captcha"])
    assert [failure.kind for failure in report.failures] == ["refused"]
    assert "is not a public address" in report.failures[0].reason
    assert captcha_service.calls == []
    with fence(AddressRules((netloc, urlsplit(captcha_service.url).netloc), public_only=True)):
        assert (await past_the_captcha("httpx", captcha_service).run([f"{site.url}/captcha"])).ok


async def test_without_its_key_nothing_is_fetched(site: Site) -> None:
    pipeline = make_pipeline("httpx", "anticaptcha", ("parsel", {"selectors": {"h": "h1"}}))
    with pytest.raises(MissingConfigError, match="'ANTICAPTCHA_KEY'"):
        await pipeline.run([f"{site.url}/captcha"])
    assert not site.hits


def test_challenges_are_found_with_their_form() -> None:
    address = "http://shop.example/in/"
    found = find_challenge(Page(Request(address), address, 200, captcha()[1].encode()))
    assert found is not None
    assert (found.kind.task, found.site_key) == ("RecaptchaV2TaskProxyless", "site-key-1")
    assert (found.action, found.method, found.fields) == ("http://shop.example/captcha", "POST", {"state": "s1"})
    bare = b"<!-- x --><div class='box cf-turnstile' data-sitekey='k'></div>"
    found = find_challenge(Page(Request(address), address, 403, bare))
    assert found is not None
    assert (found.kind.field, found.action) == ("cf-turnstile-response", address)
    assert find_challenge(Page(Request(address), address, 200, b"<p data-sitekey='k'>")) is None
