"""Every page, over HTTP: what it shows, to whom, and that stored text stays text."""

from __future__ import annotations

import json
import re
import zlib
from contextlib import AsyncExitStack

from pydantic import SecretStr

from reverie.domain.access.principals import KeyRole
from reverie.runtime.settings.settings import Settings
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.console.actions import ACTIONS
from reverie_services.console.live import MAX_STREAMS_OF_KEY
from reverie_services.console.pages import PAGES, find_page
from reverie_services.recall.app import open_service
from tests.console.pages_over_http import Answer, ConsoleVisitor, visiting
from tests.console.sample_tenant import DISTINCT, PNG, attach, dream, fill, remember
from tests.support.stack import Stack
from tests.support.tables import tell_of

OWN_ELEMENTS = {
    *("html", "head", "meta", "title", "link", "script", "body", "a", "header", "img", "form"),
    *("label", "input", "div", "span", "button", "nav", "h1", "h2", "h3", "ul", "ol", "li", "main"),
    *("p", "section", "table", "thead", "tbody", "tr", "th", "td", "select", "option", "code"),
    *("pre", "time", "dl", "dt", "dd", "blockquote", "details", "summary", "svg", "rect", "del"),
    *("ins", "strong", "br", "textarea", "fieldset", "legend", "progress", "circle", "path"),
}

PICTURE_ADDRESS = r"/console/memories/[0-9a-f-]{36}/pictures/[0-9a-f]{64}"


def check_is_safe(answer: Answer, path: str) -> None:
    """Fails where a page runs or loads anything but the console's own files."""
    page = answer.page
    assert {tag for tag, _ in page.elements} <= OWN_ELEMENTS, path
    for tag, attrs in page.elements:
        assert not [name for name in attrs if name.startswith("on") or name == "style"], path
        if tag in {"script", "link", "img"}:
            address = attrs.get("src") or attrs.get("href", "")
            is_picture = tag == "img" and re.fullmatch(PICTURE_ADDRESS, address)
            assert is_picture or address.startswith("/console/static/"), path
        for name in {"href", "action", "formaction"} & attrs.keys():
            assert attrs[name].startswith(("/console", "#")), (path, attrs[name])
    assert page.find("script", src="") == [], path
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_every_page_and_form_answers_and_hostile_text_stays_text(stack: Stack) -> None:
    sample = await fill(stack)
    made = await dream(stack, sample)
    paths, file = [*sample.pages, f"/dreams/{made}"], f"/sessions/{sample.session}/share"
    async with visiting(stack, stack.key) as visitor:
        for path in paths:
            answer = await visitor.get(path)
            assert answer.status == 200, (path, answer.page.text)
            check_is_safe(answer, path)
            assert stack.key not in answer.body
        memory = await visitor.get(f"/memories/{sample.memory}")
        shared = await visitor.get(file)
        picture = await visitor.get(sample.picture)
    assert "<script>alert(2)</script>" in memory.page.text
    # What turns the direction of writing is shown, not obeyed.
    assert "\u202e" not in memory.body
    assert "attachment" in shared.headers["Content-Disposition"]
    assert shared.page.find("script") == []
    assert shared.page.find("reverie-hostile") == []
    assert picture.data == PNG
    visited = (*paths, file, sample.picture)
    shown = [path.partition("?")[0].strip("/") for path in visited]
    pages = {found[0].path for path in shown if (found := find_page(path))}
    # Chats need the engine: `tests/engine/test_console_chat.py` visits them.
    assert pages == {page.path for page in PAGES.pages} - {"chat/{id}", "chat/{id}/images/{image}"}
    assert {path[3:] for path in shown if path.startswith("do/")} == ACTIONS.keys()


async def test_the_first_page_and_all_that_it_loads_are_small(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor:
        page = await visitor.get()
        addresses = {attrs["src"] for attrs in page.page.find("script")} | {
            attrs["href"] for attrs in page.page.find("link")
        }
        bodies = [await visitor.get(each.removeprefix("/console")) for each in addresses]
    assert len(addresses) >= 5
    assert [each.status for each in bodies] == [200] * len(bodies)
    packed = [zlib.compress(each.body.encode(), zlib.Z_BEST_SPEED) for each in (page, *bodies)]
    assert sum(map(len, packed)) < 200_000


async def test_a_text_of_64_kib_is_shown(stack: Stack) -> None:
    text = "<b>" + "x" * 65_000 + "</b>"
    memory = (await stack.post("/v1/remember", {"content": text}))["id"]
    async with visiting(stack, stack.key) as visitor:
        pages = [await visitor.get(path) for path in ("", "/memories", f"/memories/{memory}")]
    assert [page.status for page in pages] == [200] * 3
    assert text in pages[2].page.text
    assert all(len(page.body) < 40_000 for page in pages[:2])


async def test_what_does_not_exist_is_a_page_of_404(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor:
        for path in ("/nowhere", "/memories/a/b", "/do/nothing", "/live/nothing", "/%00"):
            answer = await visitor.get(path)
            assert answer.status == 404
            check_is_safe(answer, path)


async def test_pages_show_only_what_the_key_may_read(stack: Stack) -> None:
    sample = await fill(stack, "plain")
    elsewhere = stack.key_of(role=KeyRole.WRITER, reads=["project/mill"], writes=["project/mill"])
    stranger = stack.apart()
    for key in (elsewhere, stranger.key):
        async with visiting(stack, key) as visitor:
            for path in [*sample.pages, f"/sessions/{sample.session}/share", sample.picture]:
                answer = await visitor.get(path)
                assert answer.status in {200, 403, 404}, (path, answer.page.text)
                text = answer.page.text.lower()
                told = [word for word in ("crane", "sluice", "bollards", "broken") if word in text]
                assert told == [] or "q=sluice" in path, (path, told)


def administrators_only() -> set[str]:
    """The addresses of pages that other roles may not see, from the table of pages."""
    groups = {section.path: section.group for section in PAGES.sections}
    open_to_all = {"models", "webhooks"}
    return {"/counts"} | {
        f"/{page.path}".replace("{seq}", "1")
        for page in PAGES.pages
        if groups.get(page.section) == "Administration" and page.section not in open_to_all
    }


async def test_pages_of_administrators_are_refused_to_other_roles(stack: Stack) -> None:
    pages = administrators_only()
    assert len(pages) >= 8
    for role in (KeyRole.READER, KeyRole.WRITER, KeyRole.CI):
        async with visiting(stack, stack.key_of(role=role)) as visitor:
            answers = {path: (await visitor.get(path)).status for path in pages}
            menu = await visitor.get("/facts")
        assert answers == dict.fromkeys(pages, 403), role
        assert menu.page.find("a", href="/console/keys") == [], role


async def test_the_pictures_of_a_memory_are_seen_and_an_svg_is_only_saved(stack: Stack) -> None:
    memory = await remember(stack, "The harbour in two pictures.")
    seen = f"/memories/{memory}/pictures/{await attach(stack, memory, PNG, text='The quay')}"
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><title>Berths</title><script>a()</script></svg>'
    saved = f"/memories/{memory}/pictures/{await attach(stack, memory, svg)}"
    async with visiting(stack, stack.key) as visitor:
        page = (await visitor.get(f"/memories/{memory}")).page
        png, file = await visitor.get(seen), await visitor.get(saved)
        missing = [
            (await visitor.get(f"/memories/{memory}/pictures/{name}")).status
            for name in ("f" * 64, "nothing")
        ]
    images = page.find("img", src=f"/console{seen}")
    assert [image["alt"] for image in images] == ["The quay"]
    assert page.find("img", src=f"/console{saved}") == []
    assert page.find("a", href=f"/console{saved}") != []
    assert f"image/png, {len(PNG)} bytes" in page.text
    assert "Berths image/svg+xml" in page.text
    assert (png.data, png.headers["Content-Type"]) == (PNG, "image/png")
    assert "Content-Disposition" not in png.headers
    assert (file.data, file.headers["Content-Type"]) == (svg, "image/svg+xml")
    assert file.headers["Content-Disposition"].startswith("attachment; filename=")
    for answer in (png, file):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"].startswith("private")
    assert missing == [404, 404]
    await stack.call("DELETE", f"/v1/memories/{memory}")
    async with visiting(stack, stack.key) as visitor:
        assert (await visitor.get(seen)).status == 404


async def test_a_sentence_of_a_language_model_leads_to_the_memories_that_it_cites(
    stack: Stack,
) -> None:
    memory = await remember(stack, "The sluice opens at nine.", scope="project/told")
    tell_of(stack.admin_url, memory, "Sluices open at nine.")
    async with visiting(stack, stack.key) as visitor:
        page = (await visitor.get("/summaries?scope=project/told")).page
    assert page.find("a", href=f"/console/memories/{memory}") != []
    assert page.text.count("Sluices open at nine.") == 2


async def test_what_is_believed_about_a_file_is_told_in_words(stack: Stack) -> None:
    memory = await remember(
        stack, "The sluice opens at nine, as src/sluice.py says.", key="sluice.opening"
    )
    await stack.settled()
    async with visiting(stack, stack.key) as visitor:
        page = await visitor.get("/graph?from=src/sluice.py")
        nothing = await visitor.get("/graph?from=sluice.py")
    assert page.page.find("a", href=f"/console/memories/{memory}", dir="auto") != []
    assert "The sluice opens at nine" in page.page.text
    assert "from the root of its project" in nothing.page.text


async def test_lists_filter_and_page_and_keep_their_state_in_the_address(stack: Stack) -> None:
    for number, content in enumerate(DISTINCT):
        await remember(stack, content, kind="lesson" if number else "bug")
    async with visiting(stack, stack.key) as visitor:
        seen: list[str] = []
        path = "/memories?kind=lesson&limit=2"
        while path:
            page = (await visitor.get(path)).page
            rows = [link for link in page.find("a", dir="auto") if "/memories/" in link["href"]]
            assert len(rows) <= 2
            seen += [row["href"] for row in rows]
            following = page.find("a", rel="next")
            path = following[0]["href"].removeprefix("/console") if following else ""
            assert not path or "kind=lesson" in path
    assert len(seen) == len(set(seen)) == 4


async def test_an_answer_shows_every_stage_and_stands_beside_the_one_before(stack: Stack) -> None:
    await remember(stack, "The lock keeper counts the barges at noon.")
    for content in DISTINCT[:2]:
        await remember(stack, content)
    async with visiting(stack, stack.key) as visitor:
        first = await visitor.get("/ask", q="Who counts the barges?", limit="3")
        [before] = first.page.find("input", name="before")
        second = await visitor.get(
            "/ask", q="Who counts the barges?", limit="1", before=before["value"]
        )
        form = second.page.form("/console/golden-set")
        saved = await visitor.post("/golden-set", {**form, "relevant": form["shown"][:1]})
        approved = await visitor.post("/do/approve", {**form, "relevant": form["shown"][:1]})
        wrong = await visitor.get("/ask", q="x", min_confidence="seven")
    assert "<reverie-memory" in first.page.text
    for stage in ("words", "fused", "base", "factors", "score", "outcome"):
        assert stage in first.page.text
    assert "limit: 3 1" in " ".join(second.page.text.split())
    golden = json.loads(saved.body)
    assert golden["questions"]["own"] == [["Who counts the barges?", form["shown"][:1], "marked"]]
    assert set(golden["documents"]) == set(form["shown"])
    assert "min_confidence" in wrong.page.text
    assert "done=approve&count=1" in approved.headers["Location"]
    right = await stack.get(f"/v1/memories/{form['shown'][0]}")
    assert right["base_confidence"] == 1.0


async def test_recalls_are_filtered_and_followed_one_by_one(stack: Stack) -> None:
    await remember(stack, "The ferry bell cracks in frost.")
    for word in ("bell", "frost", "elephants"):
        await stack.post("/v1/recall", {"query": f"{word}?"})
    async with visiting(stack, stack.key) as visitor:
        listed = await visitor.get("/recalls", text="BELL")
        page = (await visitor.get("/recalls")).page
        links = [link["href"] for link in page.find("a", dir="auto")]
        middle = await visitor.get(links[1].removeprefix("/console"))
    assert "bell?" in listed.page.text
    assert "frost?" not in listed.page.text
    assert [link["href"] for link in middle.page.find("a", rel="prev")] == [links[0].rstrip("?")]
    assert [link["href"] for link in middle.page.find("a", rel="next")] == [links[2].rstrip("?")]


async def test_a_session_shows_memory_beside_its_turns_and_shares_no_secret(stack: Stack) -> None:
    secret = "Zq7-mW2p-harbour-9xQ4-kT8"
    started = await stack.post("/v1/sessions/start", {"agent": "pilot", "project": "harbour"})
    session = started["session"]
    turns = [{"role": "user", "content": f"Turn {number}: {secret}"} for number in range(3)]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    await stack.post("/v1/recall", {"query": "where to moor", "session": session})
    reply = await stack.call("PUT", "/v1/vault/pass", {"value": secret, "secret": True})
    assert reply.status < 300, reply
    async with visiting(stack, stack.key) as visitor:
        page = await visitor.get(f"/sessions/{session}")
        steps = [await visitor.get(f"/sessions/{session}", step=str(step)) for step in (1, 3)]
        shared = await visitor.get(f"/sessions/{session}/share")
    assert "where to moor" in page.page.text
    assert [f"Turn {number}" in steps[0].page.text for number in range(3)] == [True, False, False]
    assert steps[0].page.find("a", rel="next") != []
    assert steps[1].page.find("a", rel="next") == []
    assert "Turn 2" in shared.body
    assert secret not in shared.body


async def test_a_live_page_is_told_of_changes_until_its_sign_in_ends(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor, visiting(stack, stack.key) as other:
        address = f"{stack.url}/console/live/recalls"
        async with visitor.http.get(address) as stream, other.http.get(address) as kept:
            assert stream.content_type == "text/event-stream"
            async for line in stream.content:
                if line == b"event: ready\n":
                    await stack.post("/v1/recall", {"query": "is there news?"})
                if line == b"event: changed\n":
                    break
            assert await kept.content.readline() == b"retry: 5000\n"
            await visitor.post("/sign-out", {"csrf": await visitor.csrf()})
            await stream.content.read()
            assert not kept.content.at_eof()
        assert (await other.get("/facts")).status == 200


async def test_a_key_holds_a_few_streams_and_no_more(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor, AsyncExitStack() as opened:
        address = f"{stack.url}/console/live/recalls"
        for _ in range(MAX_STREAMS_OF_KEY):
            stream = await opened.enter_async_context(visitor.http.get(address))
            assert await stream.content.readline() == b"retry: 5000\n"
        assert (await visitor.get("/live/recalls")).status == 429
        assert (await visitor.get("/recalls")).status == 200


async def test_the_console_can_be_switched_off(shared_database: DatabaseUrls) -> None:
    mounts = []
    for enabled in (True, False):
        settings = Settings(
            home=model_home(),
            database_url=SecretStr(shared_database.service_url),
            grpc_enabled=False,
            console_enabled=enabled,
        )
        async with open_service(settings) as service:
            mounts.append(list(service.mounts))
    assert mounts == [["/compat", "/console"], ["/compat"]]


async def test_chinese_is_chosen_by_the_browser_or_by_the_person(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor:
        english = await visitor.get("/memories")
        by_browser = await _get_with(visitor, "/memories", {"Accept-Language": "zh-CN,en;q=0.5"})
        csrf = await visitor.csrf()
        fields = {"csrf": csrf, "language": "zh", "next": "/console/memories?kind=bug"}
        chosen = await visitor.post("/language", fields)
        after = await visitor.get("/memories")
    assert chosen.headers["Location"] == "/console/memories?kind=bug"
    assert [answer.page.find("html")[0]["lang"] for answer in (english, by_browser, after)] == [
        *("en", "zh", "zh")
    ]
    assert "记忆" in after.page.text


async def _get_with(visitor: ConsoleVisitor, path: str, headers: dict[str, str]) -> Answer:
    async with visitor.http.get(f"{visitor.url}/console{path}", headers=headers) as answer:
        return Answer(answer.status, answer.headers, await answer.read())
