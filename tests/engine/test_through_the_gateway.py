"""The engine behind the gateway: the Python client, `reverie chat`, and the sample chat."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

from rich.console import Console

from reverie.cli.demo.chat_scene import DECISION, answer_scripted, play_days
from reverie.client import AsyncReverie
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from tests.console.sample_tenant import PNG
from tests.engine.conftest import Engine, command_environment
from tests.support.commands import command


async def test_the_client_talks_watches_and_stops_through_the_gateway(engine: Engine) -> None:
    engine.play([ChatAnswer("Hello to you.")])
    async with AsyncReverie(engine.service.gateway, engine.stack.key) as reverie:
        assert "beck" in {agent.name for agent in (await reverie.list_agents()).items}
        group = await reverie.create_group(["beck"], project="shop-client")
        posted = await reverie.post_message(group.id, "Hello.")
        async for _, event in reverie.watch_group(group.id, after=posted.after):
            if event.type == "result":
                assert event.data["content"] == "Hello to you."
                break
        page = await reverie.load_conversation(group.id)
        assert [item.content for item in page.items] == ["Hello.", "Hello to you."]
        assert (await reverie.stop_turns(group.id)).turns == []
        posted = await reverie.post_message(group.id, "See.", images=[("image/png", PNG)])
        await engine.ended(str(group.id), {"id": str(posted.id)})
        page = await reverie.load_conversation(group.id, after=posted.no - 1)
        [id] = page.items[0].images
        image = await reverie.get_image(group.id, id)
        assert (image.media_type, image.size) == ("image/png", len(PNG))
        assert base64.b64decode(image.data) == PNG


async def test_chat_prints_answers_and_hand_overs_and_fails_with_its_turn(
    engine: Engine, tmp_path: Path
) -> None:
    def script(asked: ChatRequest) -> ChatAnswer:
        if "name is rams" in asked.system:
            return ChatAnswer("Green it is.")
        task = {"agent": "rams", "task": "Colour?"}
        ask = ChatAnswer(calls=(ToolUse("route_forward", task),))
        return ChatAnswer("Rams decides.") if asked.is_after_tool else ask

    engine.play(script)
    env = command_environment(engine, tmp_path)
    words = ("chat", "--agent", "beck", "--agent", "rams", "Which colour?")
    code, out, _ = await command(env, *words)
    assert code == 0
    assert "beck: Rams decides." in out
    assert "rams: Green it is." in out
    engine.play([ChatAnswer("Hi.")])
    code, out, _ = await command(env, "chat", "--json", "Hello.")
    kinds = [json.loads(line)["type"] for line in out.splitlines()]
    assert code == 0
    assert kinds[0] == "turn_started"
    assert kinds[-1] == "result"
    engine.play(lambda _: ChatAnswer(fault="401"))
    code, _, err = await command(env, "chat", "Hello.")
    assert (code, "401" in err) == (1, True)


async def test_a_conversation_takes_commands_files_and_approvals(
    engine: Engine, tmp_path: Path
) -> None:
    call = ToolUse("write_file", {"path": "from-chat.txt", "content": "x"})
    read = [ChatAnswer("Read."), ChatAnswer("A square.")]
    engine.play([*read, ChatAnswer(calls=(call,)), ChatAnswer("Written.")])
    note = tmp_path / "note.txt"
    note.write_text("the colour is green")
    image, other = tmp_path / "shot.txt", tmp_path / "app.bin"
    image.write_bytes(PNG)
    other.write_bytes(b"\x00\x01\xff")
    attached = [f"/attach {place}" for place in (note, image, other)]
    lines = ["/agents", *attached, "What does it say?", "Write it.", "y", "/history"]
    env = command_environment(engine, tmp_path)
    code, out, err = await command(env, "chat", given="\n".join([*lines, "/quit", ""]))
    assert code == 0
    assert "* beck" in out
    assert "the colour is green" in engine.requests[0].body_text
    assert base64.b64encode(PNG).decode() in engine.requests[0].body_text
    assert "app.bin is no text in UTF-8, and is no PNG, JPEG, GIF or WebP image" in err
    assert "beck: Written." in out
    assert (engine.folder / "from-chat.txt").exists()


async def test_the_second_day_uses_what_the_first_one_decided(engine: Engine) -> None:
    engine.play(answer_scripted)
    printed = io.StringIO()
    async with AsyncReverie(engine.service.gateway, engine.stack.key) as reverie:
        assert await play_days(reverie, Console(file=printed, width=100))
    assert "in whole cents, as we decided" in printed.getvalue()
    assert f"beck is given: {DECISION[:40]}" in printed.getvalue()
    last = engine.requests[-1]
    assert DECISION in last.last
    assert sum(DECISION in text for text in last.texts) == 1
