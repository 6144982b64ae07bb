"""The chat page of the console: a conversation, its stream, and a call that waits."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from typing import Any

import aiohttp
import pytest

from reverie.contracts.events import read_server_sent_events
from reverie.testing.chat_server import ChatAnswer, ToolUse
from reverie_services.console.pages import chat
from tests.console.pages_over_http import Answer, ConsoleVisitor, visiting
from tests.console.sample_tenant import PNG
from tests.engine.conftest import Engine


async def test_a_person_chats_and_decides_a_call_and_nobody_else_sees_it(engine: Engine) -> None:
    call = ToolUse("write_file", {"path": "from-console.txt", "content": "x"})
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer("Written, <b>really</b>.")])
    gateway = replace(engine.stack, url=engine.service.gateway)
    async with visiting(gateway, engine.stack.key) as visitor:
        listed = await visitor.get("/chat")
        form = {**listed.page.form("/console/do/begin-chat"), "project": "shop-console"}
        begun = await visitor.post("/do/begin-chat", {**form, "agent": "beck"})
        address = begun.headers["Location"]
        group = address.rpartition("/")[2]
        page = await visitor.get(address.removeprefix("/console"))
        said = {**page.page.form("/console/do/say"), "text": "Write it."}
        answer = await visitor.post("/do/say", said)
        assert answer.status == 303
        await engine.turn(group, "beck", "waiting")
        page = await visitor.get(address.removeprefix("/console"))
        assert "from-console.txt" in page.page.text
        decided = {**page.page.form("/console/do/decide-call"), "decision": "approve"}
        assert (await visitor.post("/do/decide-call", decided)).status == 303
        await engine.turn(group, "beck", "done")
        page = await visitor.get(address.removeprefix("/console"))
        assert "Written, <b>really</b>." in page.page.text
        assert "<b>really" not in page.body
        [live] = page.page.find("div", id="chat-live")
        assert "from=" not in live["data-source"]
        # The first message of a new system is said at the position 0.
        page = await visitor.get(f"{address.removeprefix('/console')}?from=0")
        [live] = page.page.find("div", id="chat-live")
        async with visitor.http.get(gateway.url + live["data-source"]) as stream:
            assert stream.status == 200
            events = read_server_sent_events(stream.content)
            assert (await anext(events)).id == "0"
            kinds: list[str] = []
            while "result" not in kinds:
                kinds.append((await anext(events)).event)
            assert "turn_started" in kinds
    assert (engine.folder / "from-console.txt").exists()
    async with visiting(gateway, engine.stack.apart().key) as stranger:
        assert (await stranger.get(f"/chat/{group}")).status == 404
        assert (await stranger.get("/live/chat", group=group)).status == 404


async def test_a_long_chat_shows_its_end_and_leads_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "MESSAGES", 4)
    engine.play([ChatAnswer(f"answer {number}") for number in range(3)])
    group = await engine.group("beck")
    for number in range(3):
        await engine.say(group, f"question {number}")
    gateway = replace(engine.stack, url=engine.service.gateway)
    async with visiting(gateway, engine.stack.key) as visitor:
        page = await visitor.get(f"/chat/{group}")
        assert "answer 2" in page.page.text
        assert "question 0" not in page.page.text
        [link] = [a["href"] for a in page.page.find("a") if "before=" in a.get("href", "")]
        page = await visitor.get(link.removeprefix("/console"))
        assert "question 0" in page.page.text
        assert "answer 2" not in page.page.text
        assert not [a for a in page.page.find("a") if "before=" in a.get("href", "")]


NODE = shutil.which("node")
SCRIPT = files("reverie_services.console") / "static/chat.js"
STUBS = """
const heard = {}, left = [], [calls, from, positions] = JSON.parse(process.argv[1]);
globalThis.addEventListener = () => {};
globalThis.location = {
  href: `http://x/console/chat/g${from}#end`,
  reload: () => left.push("reload"), replace: (address) => left.push(address),
};
globalThis.document = {
  addEventListener: (_, begin) => { globalThis.begin = begin; },
  documentElement: {scrollHeight: 0},
  getElementById: () => ({
    dataset: {labels: "{}", source: "s", settled: '["c0"]'}, scrollIntoView() {},
  }),
  querySelectorAll: (what) => what.startsWith("input") ? calls.map((value) => ({value})) : [],
};
globalThis.EventSource = class { addEventListener(type, tell) { heard[type] = tell; } };
"""
HEARD = """
begin();
for (const [call, lastEventId] of [["c0", positions[0]], ["c1", positions[1]]]) {
  const event = {type: "approval", turn: "t", data: {call}};
  heard.approval({data: JSON.stringify(event), lastEventId});
}
console.log(JSON.stringify(left));
"""


@pytest.mark.skipif(NODE is None, reason="no node is installed")
@pytest.mark.parametrize(
    ("calls", "asked", "positions", "left"),
    [
        ([], "?from=7", ["11", "12"], ["from=7&seen=12"]),
        (["c1"], "?from=7", ["11", "12"], []),
        # The start of the stream is a position, too.
        ([], "?from=0", ["2", "3"], ["from=0&seen=3"]),
        ([], "", ["1", "2"], ["from=0&seen=2"]),
        ([], "", ["5", "6"], ["from=4&seen=6"]),
    ],
)
def test_a_page_without_the_form_of_a_call_is_loaded_once_for_it(
    calls: list[str], asked: str, positions: list[str], left: list[str]
) -> None:
    assert NODE
    script = STUBS + SCRIPT.read_text() + HEARD
    command = [NODE, "-e", script, json.dumps([calls, asked, positions])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [f"http://x/console/chat/g?{query}#end" for query in left]


async def test_a_form_sends_texts_and_images_which_the_page_shows(engine: Engine) -> None:
    engine.play([ChatAnswer("I see."), ChatAnswer("A red [square].")])
    group = await engine.group("beck")
    gateway = replace(engine.stack, url=engine.service.gateway)
    async with visiting(gateway, engine.stack.key) as visitor:
        page = await visitor.get(f"/chat/{group}")
        fields = page.page.form("/console/do/say") | {"text": "See both."}
        given = [("码.py", b"x = '<b>'\r\n"), ("shot.png", PNG), ("", b"")]
        answer = await _send(visitor, fields, given)
        assert answer.status == 303, answer.body
        await engine.turn(group, "beck", "done")
        asked = engine.requests[0].body_text
        assert base64.b64encode(PNG).decode() in asked
        assert "x = '<b>'" in asked
        page = await visitor.get(f"/chat/{group}")
        assert "x = '<b>'" in page.page.text
        assert "<b>" not in page.body
        [image] = page.page.find("img", **{"class": "picture"})
        assert image["alt"] == "A red [square)."
        shown = await visitor.get(image["src"].removeprefix("/console"))
        assert (shown.data, shown.headers["Content-Type"]) == (PNG, "image/png")
        assert shown.headers["X-Content-Type-Options"] == "nosniff"
        refused = await _send(visitor, fields, [("app.bin", b"\xff\x00")])
        assert refused.status == 422
        assert "app.bin is no text in UTF-8" in refused.page.text


async def _send(
    visitor: ConsoleVisitor, fields: dict[str, Any], files: list[tuple[str, bytes]]
) -> Answer:
    form = aiohttp.FormData(quote_fields=False)
    for name in ("csrf", "id"):
        form.add_field(name, fields[name][0])
    form.add_field("text", fields["text"])
    for name, data in files:
        form.add_field("attachments", data, filename=name, content_type="application/octet-stream")
    url = f"{visitor.url}/console/do/say"
    async with visitor.http.post(url, data=form, allow_redirects=False) as answer:
        return Answer(answer.status, answer.headers, await answer.read())


async def test_a_turn_that_failed_is_told_at_its_message(engine: Engine) -> None:
    engine.play([ChatAnswer(fault="401"), ChatAnswer("Well.")])
    group = await engine.group("beck")
    await engine.say(group, "Once.")
    await engine.say(group, "Twice.")
    gateway = replace(engine.stack, url=engine.service.gateway)
    async with visiting(gateway, engine.stack.key) as visitor:
        page = (await visitor.get(f"/chat/{group}")).page
    assert len(page.find("p", **{"class": "problem"})) == 1
    assert page.text.index("Once.") < page.text.index("401") < page.text.index("Twice.")
