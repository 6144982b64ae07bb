"""The console in Chromium, where one is installed: keyboard, axe, live updates, without scripts."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import pytest_asyncio

from reverie_services.console.pages.lists import LISTS
from tests.console.sample_tenant import Sample, fill
from tests.support.background_loop import BackgroundResource
from tests.support.stack import Stack

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
FILE = "src/locks/sluice.py"

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]


@dataclass
class Console:
    """A tenant with a sample and a stale memory, and a browser.

    What pages complained of is in `complaints`.
    """

    stack: Stack
    sample: Sample
    stale: str
    browser: Browser
    complaints: list[str]

    async def open(self, **options: Any) -> Page:
        """A page of a person who is signed in."""
        context = await self.browser.new_context(base_url=self.stack.url, **options)
        context.set_default_timeout(60_000)
        page = await context.new_page()
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        await page.goto("/console/sign-in")
        await page.get_by_label("API key").fill(self.stack.key)
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url("**/console")
        return page

    def _note(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)


def expect(what: Any) -> Any:
    """Assertions that wait, of Playwright. A busy machine gets the time that it needs."""
    from playwright.async_api import expect as assertions

    assertions.set_options(timeout=60_000)
    return assertions(what)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def console(system: BackgroundResource[Stack]) -> AsyncIterator[Console]:
    """One tenant and one browser for all tests of this file."""
    # Imported late: whoever collects the tests need not wait for it.
    from playwright.async_api import async_playwright

    with system.in_use() as shared:
        async with aiohttp.ClientSession() as http, async_playwright() as playwright:
            stack = replace(shared.apart(), http=http)
            sample = await fill(stack)
            stale = await make_stale(stack)
            browser = await playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            yield Console(stack, sample, stale, browser, [])
            await browser.close()


async def make_stale(stack: Stack) -> str:
    """A memory about a file that a commit removed."""
    body = {
        "content": f"The sluice is opened by {FILE}.",
        "scope": "project/harbour",
        "git": {"branch": "main", "commit": "a" * 40, "files": [FILE]},
    }
    memory = str((await stack.post("/v1/remember", body))["id"])
    commit = {"sha": "c" * 40, "subject": "Remove it", "committed_at": "2099-01-01T00:00:00Z"}
    change = {
        "project": "harbour",
        "branch": "main",
        "default_branch": "main",
        "before": "a" * 40,
        "after": "c" * 40,
        "commits": [commit],
        "files": [{"path": FILE, "status": "deleted"}],
    }
    await stack.settled()
    await stack.post("/v1/git/changes", change)
    await stack.settled()
    return memory


def one_of_each(pages: list[str]) -> list[str]:
    """One address of each page and form that differs from others in more than rows or words."""
    alike = {f"/{spec.path}" for spec in LISTS[1:]}
    forms = {"/do/edit", "/do/link", "/do/create-key", "/do/project-settings"}
    addresses: dict[str, str] = {}
    for path in pages:
        name, _, query = path.partition("?")
        if name in alike or (name.startswith("/do/") and name not in forms):
            continue
        # With parameters, a page shows more.
        if name not in addresses or (query and addresses[name] == name):
            addresses[name] = path
    return list(addresses.values())


async def test_axe_and_the_browser_find_nothing_on_any_page(console: Console) -> None:
    page = await console.open()
    console.complaints.clear()
    found: dict[str, list[str]] = {}
    for path in ["/sign-in", *one_of_each(console.sample.pages)]:
        await page.goto(f"/console{path}")
        await page.evaluate(AXE.read_text())
        result = await page.evaluate(
            "axe.run({resultTypes: ['violations']}).then(result => result.violations.flatMap("
            "each => each.nodes.map(node => `${each.id} ${node.target} ${node.failureSummary}`)))"
        )
        if result:
            found[path] = result
    await page.context.close()
    assert found == {}, "\n".join(f"{path}: {each}" for path in found for each in found[path])
    assert console.complaints == []


async def test_dark_and_small_pages_are_as_readable(console: Console) -> None:
    page = await console.open(color_scheme="dark", viewport={"width": 390, "height": 800})
    memory = console.sample.memory
    for path in ("", f"/memories/{memory}", "/stale", "/ask?q=sluice&limit=3"):
        await page.goto(f"/console{path}")
        await page.evaluate(AXE.read_text())
        result = await page.evaluate(
            "axe.run({runOnly: ['color-contrast', 'scrollable-region-focusable']})"
        )
        assert result["violations"] == [], path
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, path
    await page.context.close()


async def test_a_memory_is_found_and_edited_by_keyboard_alone(console: Console) -> None:
    body = {"content": "The lamp is lit at dusk.", "scope": "project/harbour"}
    memory = (await console.stack.post("/v1/remember", body))["id"]
    page = await console.open()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.goto(f"/console/memories/{memory}")
    edit = page.get_by_role("link", name="Edit", exact=True)
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await edit.evaluate("each => each === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/do/edit**")
    text = page.get_by_role("textbox", name="Text")
    while not await text.evaluate("each => each === document.activeElement"):
        await page.keyboard.press("Tab")
    await page.keyboard.press("Control+A")
    await page.keyboard.type("The lamp is lit at noon.")
    button = page.get_by_role("button", name="Edit", exact=True)
    while not await button.evaluate("each => each === document.activeElement"):
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/memories/**")
    await expect(page.get_by_role("status")).to_contain_text("A new version is stored.")
    await expect(page.locator("del")).to_have_text("dusk")
    await page.context.close()


async def test_everything_needed_works_without_scripts(console: Console) -> None:
    body = {"content": "The west gate is painted green.", "kind": "spec"}
    await console.stack.post("/v1/remember", body)
    page = await console.open(java_script_enabled=False)
    await page.get_by_role("link", name="Memories", exact=True).click()
    await page.get_by_label("Kind").select_option("spec")
    await page.get_by_role("button", name="Filter").click()
    await page.locator("td a[dir]").first.click()
    await page.get_by_role("link", name="Pin", exact=True).click()
    await page.get_by_role("button", name="Pin", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("The memory is pinned.")
    await page.goto(f"/console/graph?from={FILE}")
    await expect(page.get_by_role("region", name="Nodes")).to_contain_text("The sluice is opened")
    await expect(page.get_by_text("What is believed about it")).to_be_visible()
    await page.context.close()


async def test_recalls_appear_without_a_reload(console: Console) -> None:
    page = await console.open()
    async with page.expect_response("**/console/live/recalls") as stream:
        await page.goto("/console/recalls")
    assert (await stream.value).status == 200
    await page.evaluate("window.untouched = true")
    await console.stack.post("/v1/recall", {"query": "who rings the fog bell?"})
    await expect(page.get_by_text("who rings the fog bell?")).to_be_visible()
    assert await page.evaluate("window.untouched") is True
    await page.context.close()


async def test_the_graph_is_drawn_and_taken_away(console: Console) -> None:
    page = await console.open()
    await page.goto(f"/console/graph?from={console.sample.memory}")
    await expect(page.locator("#graph canvas").first).to_be_visible()
    for name, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        async with page.expect_download() as download:
            await page.get_by_role("button", name=name).click()
        path = await (await download.value).path()
        assert path.read_bytes().startswith(start), name
    await page.context.close()


async def test_stale_memories_are_confirmed_from_their_page(console: Console) -> None:
    page = await console.open()
    await page.goto("/console/stale")
    own = page.locator(".stale-item", has=page.locator(f"[value='{console.stale}']"))
    await expect(own).to_contain_text("Remove it")
    await own.get_by_role("checkbox").check()
    await page.get_by_role("button", name="Confirm the selected").click()
    await expect(page.get_by_text("is still true")).to_be_visible()
    await page.get_by_role("button", name="Confirm", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("Confirmed")
    await expect(own).to_have_count(0)
    await page.context.close()


async def test_a_page_in_a_frame_of_another_site_stays_empty(console: Console) -> None:
    page = await console.open()
    console.complaints.clear()
    await page.route(
        "https://evil.example/*",
        lambda route: route.fulfill(
            body=f"<iframe src='{console.stack.url}/console'></iframe>", content_type="text/html"
        ),
    )
    await page.goto("https://evil.example/")
    framed = await page.frames[-1].content()
    assert len(page.frames) == 2
    assert "Overview" not in framed
    assert "Sign in" not in framed
    console.complaints.clear()
    await page.context.close()
