"""The chat page of the console: a conversation, its stream, and a call that waits."""

from __future__ import annotations

from dataclasses import replace

from reverie.contracts.events import read_server_sent_events
from reverie.testing.chat_server import ChatAnswer, ToolUse
from tests.console.pages_over_http import visiting
from tests.engine.conftest import Engine


async def test_a_person_chats_and_decides_a_call_in_the_console(engine: Engine) -> None:
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
        source = f"{gateway.url}{live['data-source'].replace('from=0', 'from=1')}"
        async with visitor.http.get(source) as stream:
            assert stream.status == 200
            async for event in read_server_sent_events(stream.content):
                if event.event == "result":
                    break
    assert (engine.folder / "from-console.txt").exists()


async def test_a_chat_is_shown_to_nobody_else(engine: Engine) -> None:
    group = await engine.group("beck")
    gateway = replace(engine.stack, url=engine.service.gateway)
    async with visiting(gateway, engine.stack.apart().key) as visitor:
        assert (await visitor.get(f"/chat/{group}")).status == 404
        assert (await visitor.get("/live/chat", group=group)).status == 404
