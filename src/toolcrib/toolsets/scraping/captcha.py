"""``anticaptcha``: pages that ask for a captcha are answered, by a service that people or models work for.

The service speaks the JSON interface that most of them share: ``createTask``, then ``getTaskResult`` until it is ready.
The answered form goes through the pipeline from its beginning, so the client that was asked sends the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin

from pydantic import Field

from toolcrib import ToolFailedError, ToolTimeoutError
from toolcrib.stacking import BrickConfig, Page, Request, StepContext
from toolcrib.toolsets.scraping.fetching import ConnectingBrick
from toolcrib.toolsets.scraping.specs import scraping_spec

if TYPE_CHECKING:
    import httpx
    from lxml.html import FormElement

_SOLVED = "captcha:"


@dataclass(frozen=True, slots=True)
class Kind:
    """A captcha by the class of its element, the service's name for it, and the form field for the answer."""

    css_class: str
    task: str
    field: str


KINDS = (
    Kind("g-recaptcha", "RecaptchaV2TaskProxyless", "g-recaptcha-response"),
    Kind("h-captcha", "HCaptchaTaskProxyless", "h-captcha-response"),
    Kind("cf-turnstile", "TurnstileTaskProxyless", "cf-turnstile-response"),
)


@dataclass(frozen=True, slots=True)
class Challenge:
    kind: Kind
    site_key: str
    action: str
    method: str
    fields: Mapping[str, str]


class AntiCaptchaBrick(ConnectingBrick[Page, Page]):
    """Lets pages without a captcha pass; the others come back as the page behind it."""

    class Config(BrickConfig):
        endpoint: str = Field("https://api.anti-captcha.com", description="where the service answers")
        timeout: float = Field(120.0, gt=0, le=600, description="seconds for one solution")
        poll_seconds: float = Field(3.0, gt=0, description="how often to ask whether it is solved")
        task_types: dict[str, str] = Field(
            default_factory=dict, description="a service's own names for tasks, such as {'cf-turnstile': '...'}"
        )
        attempts: int = Field(2, ge=1, le=10, description="how often a page may ask again")

    spec = scraping_spec("anticaptcha")
    private = ("endpoint",)
    takes = Page
    gives = Page
    modules = ("httpx", "lxml")
    config: Config

    async def open(self) -> None:
        import httpx

        self._key = self.secret("ANTICAPTCHA_KEY")
        await super().open()
        self._client = httpx.AsyncClient(timeout=30, trust_env=False, proxy=self.guarded or None)

    async def close(self) -> None:
        await self._client.aclose()
        await super().close()

    async def process(self, item: Page, context: StepContext, /) -> Sequence[Page]:
        challenge = await asyncio.to_thread(find_challenge, item)
        if challenge is None:
            return [item]
        attempt = _attempt(item.request)
        if attempt >= self.config.attempts:
            raise ToolFailedError(self.spec.name, f"{item.url} asks for a captcha again after {attempt} solutions")
        context.tell("waiting for a captcha to be solved")
        token = await self._solve(challenge, item)
        context.follow(_answer(challenge, token, item, attempt + 1))
        return []

    async def _solve(self, challenge: Challenge, page: Page) -> str:
        import httpx

        kind = challenge.kind
        name = self.config.task_types.get(kind.css_class, kind.task)
        task = {"type": name, "websiteURL": page.url, "websiteKey": challenge.site_key}
        async with self.limit_time(self.config.endpoint, httpx.TimeoutException, httpx.HTTPError):
            made = await self._call("createTask", {"task": task})
            while True:
                result = await self._call("getTaskResult", {"taskId": made["taskId"]})
                if result.get("status") == "ready":
                    return _token(result["solution"])
                await asyncio.sleep(self.config.poll_seconds)
        raise ToolTimeoutError(self.spec.name, self.config.timeout)

    async def _call(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        address = f"{self.config.endpoint.rstrip('/')}/{method}"
        response: httpx.Response = await self._client.post(address, json={"clientKey": self._key, **body})
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        if answer.get("errorId"):
            code = answer.get("errorCode", answer["errorId"])
            raise ToolFailedError(self.spec.name, f"{method} answered {code}: {answer.get('errorDescription', '')}")
        return answer


def find_challenge(page: Page) -> Challenge | None:
    """The captcha that a page asks for, with the form to send its answer in."""
    if b"data-sitekey" not in page.body:
        return None
    from lxml import html

    for element in html.fromstring(page.text).iter():
        classes = (element.get("class") or "").split()
        kind = next((kind for kind in KINDS if kind.css_class in classes), None)
        site_key = element.get("data-sitekey")
        if kind is not None and site_key:
            form: Any = next(element.iterancestors("form"), None)
            return _challenge(kind, site_key, form, page)
    return None


def _challenge(kind: Kind, site_key: str, form: FormElement | None, page: Page) -> Challenge:
    if form is None:
        return Challenge(kind, site_key, page.url, "POST", {})
    fields = {str(name): str(value) for name, value in form.form_values()}
    return Challenge(kind, site_key, urljoin(page.url, form.action or ""), form.method.upper(), fields)


def _answer(challenge: Challenge, token: str, page: Page, attempt: int) -> Request:
    data = urlencode({**challenge.fields, challenge.kind.field: token})
    before, note = page.request, f"{_SOLVED}{attempt}"
    headers = dict(before.headers)
    if challenge.method == "GET":
        address = f"{challenge.action}{'&' if '?' in challenge.action else '?'}{data}"
        return Request(address, headers=headers, depth=before.depth, note=note)
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    return Request(challenge.action, "POST", headers, data.encode(), before.depth, note=note)


def _token(solution: Mapping[str, Any]) -> str:
    """The services agree on the call, not on what they call the answer."""
    return str(solution.get("gRecaptchaResponse") or solution["token"])


def _attempt(request: Request) -> int:
    return int(request.note.removeprefix(_SOLVED)) if request.note.startswith(_SOLVED) else 0
