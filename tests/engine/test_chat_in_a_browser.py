"""The chat page in Chromium, where one is installed: what streams, is folded, and is asked."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tests.console
from reverie.testing.chat_server import ChatAnswer, ToolUse
from tests.console.sample_tenant import PNG
from tests.engine.conftest import Engine

if TYPE_CHECKING:
    from playwright.async_api import Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
AXE = Path(tests.console.__file__).parent / "vendor" / "axe.min.js"
FIND = """
axe.run({resultTypes: ['violations']}).then(result => result.violations.flatMap(
  each => each.nodes.map(node => `${each.id} ${node.target} ${node.failureSummary}`)))
"""

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.timeout(240),
]


@pytest.fixture
async def page(engine: Engine) -> AsyncIterator[Page]:
    """A page of a person who is signed in; it may complain of nothing."""
    from playwright.async_api import async_playwright

    complaints: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        context = await browser.new_context(base_url=engine.service.gateway)
        context.set_default_timeout(30_000)
        opened = await context.new_page()
        opened.on("console", lambda message: complaints.append(f"{message.type} {message.text}"))
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        await opened.goto("/console/sign-in")
        await opened.get_by_label("API key").fill(engine.stack.key)
        await opened.get_by_role("button", name="Sign in").click()
        await opened.wait_for_url("**/console")
        yield opened
        await browser.close()
    assert complaints == []


def _expect(what: Any) -> Any:
    from playwright.async_api import expect

    expect.set_options(timeout=30_000)
    return expect(what)


async def _check_axe(page: Page) -> None:
    await page.evaluate(AXE.read_text())
    assert await page.evaluate(FIND) == []


async def test_the_chat_page_streams_folds_asks_and_shows_the_newest_first(
    engine: Engine, page: Page
) -> None:
    """One test, so that one browser is started."""
    await _check_that_a_turn_streams_folds_asks_and_is_there_after_a_reload(engine, page)
    await _check_that_the_newest_is_seen_first_with_its_picture_and_its_steps(engine, page)


async def _check_that_a_turn_streams_folds_asks_and_is_there_after_a_reload(
    engine: Engine, page: Page
) -> None:
    released: list[bool] = []
    look = ToolUse("list_files", {"pattern": "*.none"})
    write = ToolUse("write_file", {"path": "from-browser.txt", "content": "x"})
    engine.play(
        [
            ChatAnswer("Looking <b>now</b>.", calls=(look,), hold=lambda: bool(released)),
            ChatAnswer(thinking="It is not there.", calls=(write,)),
            ChatAnswer("It is written."),
        ]
    )
    await engine.agent("thinker", ask=["write_file"], models=["second"])
    group = await engine.group("thinker", project="shop-browser")
    await page.goto("/console/chat")
    await _check_axe(page)
    await page.goto(f"/console/chat/{group}")
    await page.get_by_label("Message").fill("Write it.")
    await page.get_by_role("button", name="Say", exact=True).click()
    live = page.locator("#chat-live")
    # It is there before the answer is whole.
    await _expect(live.get_by_text("Looking <b>now</b>.")).to_be_visible()
    await _expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await _check_axe(page)
    released.append(True)
    await page.get_by_role("button", name="Allow").click()
    await _expect(page.get_by_text("It is written.").first).to_be_visible()
    assert (engine.folder / "from-browser.txt").exists()
    await page.goto(f"/console/chat/{group}?from=1")
    # It stands in front of the answer, or where turns go on until that is stored.
    called = page.locator("details").filter(has_text="list_files")
    await _expect(called.get_by_text("(none)")).to_be_hidden()
    await called.locator("summary").click()
    await _expect(called.get_by_text("(none)")).to_be_visible()
    thought = page.locator("details").filter(has_text="It is not there.")
    await _expect(thought.locator("pre")).to_be_hidden()
    await thought.locator("summary").click()
    await _expect(thought.locator("pre")).to_be_visible()
    await page.reload()
    await _expect(page.locator("ol.lane").get_by_text("It is written.")).to_be_visible()


async def _check_that_the_newest_is_seen_first_with_its_picture_and_its_steps(
    engine: Engine, page: Page
) -> None:
    look = ToolUse("list_files", {"pattern": "*.none"})
    said = [ChatAnswer(f"Answer {number}.\n" * 30) for number in range(2)]
    shown = [ChatAnswer(thinking="Hm.", calls=(look,)), ChatAnswer("A square."), ChatAnswer("Red.")]
    engine.play([*said, *shown])
    await engine.agent("thinker", models=["second"])
    group = await engine.group("thinker", project="shop-newest")
    for number in range(2):
        await engine.say(group, f"Question {number}?")
    await page.goto(f"/console/chat/{group}")
    await page.get_by_label("Message").fill("What is this?")
    await page.get_by_label("Texts and images").set_input_files(
        {"name": "shot.png", "mimeType": "image/png", "buffer": PNG}
    )
    await page.get_by_role("button", name="Say", exact=True).click()
    await _expect(page.get_by_text("A square.")).to_be_in_viewport()
    await _expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    await page.goto("/console/chat")
    await page.get_by_role("link", name="thinker").first.click()
    await _expect(page.get_by_text("A square.")).to_be_in_viewport()
    await _expect(page.get_by_role("img", name="Red.")).to_be_visible()
    await page.get_by_role("link", name="Show how answers").click()
    answer = page.locator("li.assistant").last
    await _expect(answer.locator("details").filter(has_text="list_files")).to_be_visible()
    await _expect(answer.locator("details").filter(has_text="memories given")).to_be_visible()
    await _check_axe(page)
