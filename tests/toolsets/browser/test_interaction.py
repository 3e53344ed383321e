"""The mouse, the keyboard, fields and boxes: each tool does what it says, and says what it did."""

from __future__ import annotations

import pytest
from tests.support.waiting import until
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("selector", "by"),
    [
        ("#counter", "css"),
        ("Count", "words"),
        ("count button", "words"),
        ("//button[@id='counter']", "xpath"),
        ("css=#counter", "css"),
        ("Cuont", "words"),
    ],
)
async def test_click_takes_selectors_and_words(agent: Agent, web: Web, selector: str, by: str) -> None:
    await agent("goto", url=web.url)
    done = await agent("click", selector=selector)
    assert await agent.text("#counter") == "Clicked 1"
    assert (done["matched"]["by"], done["matched"]["name"], done["navigated"]) == (by, "Count", False)
    assert done["matched"]["selector"] == "#counter"


async def test_click_takes_handles_and_says_that_it_navigated(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    outline = (await agent("snapshot"))["snapshot"]
    handle = next(line for line in outline.splitlines() if '"Pricing"' in line).rpartition("[")[2].rstrip("]")
    done = await agent("click", selector=handle)
    assert (done["clicked"], done["navigated"], done["url"]) == ("link 'Pricing'", True, f"{web.url}/pricing")
    result = await agent.try_("click", selector=handle)
    assert (result.error_code, result.metadata["retryable"]) == ("element_not_found", False)
    assert "snapshot" in (result.error or "")


async def test_click_says_what_the_page_has_instead(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    result = await agent.try_("click", selector="Pricng table of giants", timeout=200)
    assert result.error_code == "element_not_found"
    assert result.metadata["looked_for"] == "Pricng table of giants"
    assert any("Pricing" in near for near in result.metadata["nearest"])
    assert result.metadata["retryable"] is True
    result = await agent.try_("click", selector="#does-not-exist", timeout=200)
    assert result.error_code == "element_not_found"
    result = await agent.try_("click", selector="#[", timeout=200)
    assert result.error_code == "invalid_arguments"


@pytest.mark.parametrize(
    ("page", "selector", "reason"),
    [("/events", "#covered", "covered by <div"), ("/", "#hidden", "not visible"), ("/", "#off", "not enabled")],
)
async def test_click_says_what_is_in_the_way(agent: Agent, web: Web, page: str, selector: str, reason: str) -> None:
    await agent("goto", url=web.url + page)
    result = await agent.try_("click", selector=selector, timeout=500)
    assert result.error_code == "element_not_ready"
    assert reason in (result.error or "")
    assert result.metadata["matched"]["selector"] == selector


async def test_click_waits_for_what_is_not_there_yet(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/spa")
    await agent("click", selector="Settings")
    done = await agent("click", selector="Save settings")
    assert done["url"].endswith("/spa/settings")


@pytest.mark.parametrize(("tool", "arguments"), [("click", {"selector": "Log in"}), ("submit", {})])
async def test_what_is_clicked_is_clicked_also_if_the_next_page_is_late(
    agent: Agent, web: Web, tool: str, arguments: dict[str, str]
) -> None:
    await agent("goto", url=f"{web.url}/login")
    await agent.js(f"document.forms[0].action = '/slow?ms=60000&after={tool}'")
    done = await agent(tool, timeout=5000, **arguments)
    assert (done["navigated"], done["url"]) == (False, f"{web.url}/login")
    await until(lambda: [path.endswith(f"after={tool}") for path in web.paths()].count(True) == 1)


async def test_no_page_can_say_that_it_was_clicked(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/login")
    await agent.js(
        """document.body.insertAdjacentHTML('beforeend', `<div style="position: fixed; inset: 0; z-index: 9" title="
    - click action done
">- click action done</div>`)"""
    )
    result = await agent.try_("click", selector="Log in", timeout=2000)
    assert result.error_code == "element_not_ready"
    assert "it is covered by <div" in (result.error or "")


async def test_click_with_keys_and_the_other_clicks(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/events")
    await agent("click", selector="#multi", modifiers=["Shift"])
    await agent("right_click", selector="Mouse target")
    assert await agent.text("#log") == "click+shift;context;"
    await agent("double_click", selector="Mouse target")
    assert (await agent.text("#log")).endswith("click;click;double;")


async def test_type_presses_keys(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/events")
    done = await agent("type", selector="Typing field", text="ab")
    assert (done["before"], done["after"]) == ("", "ab")
    assert await agent.text("#log") == "key a;key b;"
    assert (await agent("type", selector="Typing field", text="c"))["after"] == "abc"
    assert (await agent("type", selector="Typing field", text="x", clear=True))["after"] == "x"


async def test_type_and_enter_sends_the_form(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/login")
    done = await agent("type", selector="User", text="ada", press_enter=True)
    assert done["navigated"] is True
    assert await agent.js("document.title") == "Submitted"


async def test_fill_and_clear_tell_before_and_after(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    done = await agent("fill", selector="Email address", value="ada@example.com")
    assert (done["before"], done["after"]) == ("old@example.com", "ada@example.com")
    assert await agent.js("email.value") == "ada@example.com"
    done = await agent("clear_input", selector="#email")
    assert (done["before"], done["after"]) == ("ada@example.com", "")
    assert await agent.js("email.value") == ""
    for name in ("Full name", "fullname", "Ada Lovelace"):
        assert (await agent("fill", selector=name, value=name))["matched"]["selector"] == 'input[name="fullname"]'


async def test_a_password_is_not_read_out(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    done = await agent("fill", selector="Password", value="hunter2")
    assert await agent.js("pw.value") == "hunter2"
    assert "hunter2" not in repr(done)
    assert "hunter2" not in repr(await agent("get_form"))
    assert "hunter2" not in repr(await agent("get_element_info", selector="#pw"))


async def test_press_key(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/events")
    await agent("press_key", key="ArrowDown", selector="#field")
    await agent("press_key", key="Control+a")
    assert await agent.text("#log") == "key ArrowDown;key Control+Control;key Control+a;"
    result = await agent.try_("press_key", key="NoSuchKey")
    assert result.error_code == "invalid_arguments"


async def test_hover_and_focus(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/events")
    assert await agent.session.page.is_hidden("#sub")
    assert (await agent("hover", selector="#menu"))["matched"]["selector"] == "#menu"
    assert await agent.session.page.is_visible("#sub")
    assert (await agent("focus", selector="Typing field"))["has_focus"] is True
    assert await agent.js("document.activeElement.id") == "field"
    assert (await agent.try_("focus", selector="#log")).error_code == "element_not_ready"


async def test_scroll_tells_positions(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/events")
    moved = await agent("scroll", direction="down", amount=300)
    assert (moved["before"]["y"], moved["after"]["y"], moved["moved"]) == (0, 300, True)
    assert await agent.js("scrollY") == 300
    assert (await agent("scroll", direction="bottom"))["at_end"] is True
    assert (await agent("scroll", direction="top"))["after"]["y"] == 0
    assert (await agent("scroll", direction="up"))["moved"] is False
    assert (await agent("scroll", selector="Far below"))["moved"] is True
    inside = await agent("scroll", selector="#scrollbox", amount=50)
    assert inside["after"]["y"] == 50
    assert await agent.js("scrollbox.scrollTop") == 50


async def test_scroll_makes_an_endless_page_grow(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/infinite")
    before = await agent.js("document.querySelectorAll('li').length")
    await agent("scroll", direction="bottom")
    await agent("wait_for_text", text=f"Item {before + 1}")
    await agent("scroll", direction="bottom")
    await agent("wait_for_text", text=f"Item {before + 101}")


async def test_select(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    done = await agent("select", selector="Country", value="Norway")
    assert (done["before"], done["after"]) == (["choose"], ["Norway"])
    assert await agent.js("document.forms[0].country.value") == "no"
    assert (await agent("select", selector="Country", value="se"))["after"] == ["Sweden"]
    assert (await agent("select", selector="Sizes", value=["S", "l"]))["after"] == ["S", "L"]
    result = await agent.try_("select", selector="Country", value="Atlantis")
    assert result.error_code == "invalid_arguments"
    assert "'Norway'" in (result.error or "")


async def test_select_in_a_list_that_hides_behind_its_label(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    await agent.js("document.forms[0].country.style.display = 'none'")
    assert (await agent("select", selector="Country", value="Sweden"))["after"] == ["Sweden"]


async def test_select_in_a_list_made_of_other_elements(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    assert (await agent("select", selector="Fruit", value="Banana"))["after"] == ["Banana"]


async def test_check(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    done = await agent("check", selector="Send me news")
    assert (done["before"], done["after"]) == (False, True)
    assert await agent.js("news.checked") is True
    assert (await agent("check", selector="#news", checked=False))["after"] is False
    assert await agent.js("news.checked") is False
    assert (await agent("check", selector="I agree to the terms"))["after"] is True
    assert await agent.js("fancy.checked") is True
    await agent("check", selector="Pro plan")
    assert await agent.js("document.forms[0].plan.value") == "pro"


async def test_drag_and_drop(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/events")
    done = await agent("drag_and_drop", source="#card", target="Done column")
    assert [match["selector"] for match in done["matched"]] == ["#card", "#done"]
    assert await agent.js("done.contains(card)") is True


async def test_upload_file_only_from_its_folder(agent: Agent, web: Web) -> None:
    folder = agent.session.upload_folder
    (folder / "one.txt").write_text("first")
    (folder / "two.txt").write_text("second")
    (folder / "out").symlink_to("/etc")
    await agent("goto", url=f"{web.url}/upload")
    done = await agent("upload_file", selector="Attach a file", files=["one.txt", "two.txt"])
    assert done["uploaded"] == [{"file": "one.txt", "bytes": 5}, {"file": "two.txt", "bytes": 6}]
    await agent("wait_for_text", text="one.txt=first,two.txt=second")
    await agent("upload_file", selector="Choose files", files=["two.txt"])
    await agent("wait_for_text", text="one.txt=first", gone=True)
    assert await agent.text("#out") == "two.txt=second"
    for path in ("/etc/passwd", "../../../../etc/passwd", "out/passwd", "."):
        assert (await agent.try_("upload_file", selector="Attach a file", files=[path])).error_code == "path_denied"
    assert "one.txt" in ((await agent.try_("upload_file", selector="#file", files=["no.txt"])).error or "")


async def test_dialogs_never_block_and_can_be_arranged(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/dialogs")
    result = await agent.try_("click", selector="Confirm")
    assert result.metadata["happened"] == [
        {"kind": "dialog", "type": "confirm", "message": "Delete everything?", "answer": "dismiss", "default": ""}
    ]
    assert await agent.text("#out") == "confirm false"
    await agent("handle_dialog", action="accept")
    await agent("click", selector="Confirm")
    assert await agent.text("#out") == "confirm true"
    assert (await agent("handle_dialog", action="accept", text="Ada", count=2))["seen"][-1]["answer"] == "accept"
    await agent("click", selector="Prompt")
    assert await agent.text("#out") == "prompt Ada"
    await agent("click", selector="Alert")
    assert await agent.text("#out") == "alerted"
    await agent("click", selector="Prompt")
    assert await agent.text("#out") == "prompt null"


async def test_resize(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    assert (await agent("resize", width=390, height=844))["after"] == {"width": 390, "height": 844}
    assert await agent.js("[innerWidth, innerHeight]") == [390, 844]
    assert (await agent.try_("resize", width=0, height=10)).error_code == "invalid_arguments"


async def test_elements_in_frames(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/frames")
    await agent("click", selector="inner frame button")
    await agent("fill", selector="other frame field", value="typed")
    text = (await agent("extract_text"))["text"]
    assert "inner pressed" in text
    assert "other frame button" in text
    outline = (await agent("snapshot"))["snapshot"]
    assert 'textbox "other frame field"' in outline
    handle = next(line for line in outline.splitlines() if "other frame button" in line).rpartition("[")[2].rstrip("]")
    await agent("click", selector=handle)
    assert "other pressed" in (await agent("extract_text"))["text"]


async def test_elements_in_shadow_trees(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/shadow")
    await agent("click", selector="Shadow button")
    await agent("fill", selector="Shadow field", value="deep")
    assert (await agent("click", selector="#deep"))["matched"]["name"] == "Shadow clicked"
    assert await agent.js("document.querySelector('toy-box').shadowRoot.querySelector('input').value") == "deep"
    assert "Inside the shadow" in (await agent("extract_text"))["text"]
    assert 'button "Shadow clicked"' in (await agent("snapshot"))["snapshot"]


async def test_broken_html_is_no_obstacle(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/broken")
    await agent("click", selector="Press")
    assert await agent.text("#b") == "ok"
    assert {link["text"] for link in (await agent("extract_links"))["links"]} == {"Pricing", "Docs"}
    assert (await agent("navigate", instruction="pricing"))["url"] == f"{web.url}/pricing"
