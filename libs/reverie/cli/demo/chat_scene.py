"""The sample chat: three agents over two days, by a scripted model that needs no account.

The model sees what any model would see. On the second day it says what was decided on the first
only if it finds that in its prompt, where memory put it.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import shorten
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import SecretStr
from rich.console import Console
from rich.rule import Rule

from reverie.cli.agents.concurrent_turns import OpenTurns, TurnOrder
from reverie.client import AsyncReverie
from reverie.contracts.dreams import DreamPage
from reverie.contracts.engine import EngineEvent, GroupBody
from reverie.domain.core.errors import ReverieError
from reverie.embedded.ports import choose_port
from reverie.runtime.settings.settings import Settings
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse, chat_server

PROJECT = "bookshop-chat"
AGENTS = ("fowler", "beck", "torvalds")
DECISION = "Prices are kept as whole cents, because euros as floats lost money in the June report."
FIRST_DAY = "How should we store prices? Decide it, and let beck say how we test it."
SECOND_DAY = "@beck We want a discount of 10 %. How do you compute it?"
USED = "in whole cents, as we decided"


def enable_engine(settings: Settings) -> Settings:
    """The settings with the engine, whose two models are the scripted one in both wire formats."""
    port = choose_port(0, "127.0.0.1", set())
    url = f"http://127.0.0.1:{port}"
    models = {
        "default": {"provider": "openai", "model": "scripted", "url": f"{url}/v1"},
        "second": {"provider": "anthropic", "model": "scripted", "url": url, "key": "none"},
    }
    fields = {name: getattr(settings, name) for name in settings.model_fields_set}
    added = {"engine_enabled": True, "engine_models": SecretStr(json.dumps(models))}
    return type(settings).model_validate(fields | added)


def answer_scripted(request: ChatRequest) -> ChatAnswer:
    """What the scripted model says: it decides, hands on, and on the second day looks it up."""
    said = "\n".join(request.texts)
    if "10 %" in said:
        known = DECISION in said
        answer = f"{USED}: price * 90 // 100." if known else "as a float: price * 0.9."
        return ChatAnswer(f"I compute it {answer}", seconds=0.3)
    if "name is beck" in request.system:
        return ChatAnswer("One test: 0.10 + 0.20 is 30 cents, exactly.", seconds=0.3)
    if "name is torvalds" in request.system:
        return ChatAnswer("Good. No special case, no float, nothing to break.", seconds=0.3)
    calls = [
        ToolUse("remember", {"content": DECISION, "kind": "decision", "key": "price-unit"}),
        ToolUse("route_forward", {"agent": "beck", "task": "Say how we test that."}),
    ]
    done = len(request.results)
    if done < len(calls):
        return ChatAnswer(calls=(calls[done],))
    return ChatAnswer(f"Decided. {DECISION}", seconds=0.3)


async def play_chat(
    gateway: str, api_key: str, settings: Settings, console: Console, ca: Path | None
) -> bool:
    """Plays both days; returns whether the second day used what the first one decided."""
    models = json.loads(settings.engine_models.get_secret_value()) if settings.engine_models else {}
    port = urlsplit(models["second"]["url"]).port
    async with (
        chat_server(answer_scripted, port),
        AsyncReverie(gateway, api_key, agent="reverie-demo", ca=ca) as client,
    ):
        try:
            return await play_days(client, console)
        except ReverieError as error:
            console.print(f"The chat ended early: {error}", markup=False)
            return False


async def play_days(client: AsyncReverie, console: Console) -> bool:
    """Plays both days on an engine whose models are scripted. Raises `ReverieError`."""
    removed = await client.delete_project(PROJECT)
    while not removed.done:
        removed = await client.delete_project(PROJECT, cursor=removed.next)
    await client.put_agent("torvalds", {"models": ["second"], "persona": "torvalds"})
    console.print(Rule("The first day"))
    first = await _open_group(client)
    await _talk(client, first, FIRST_DAY, console)
    await _talk(client, first, "@torvalds Do you agree?", console)
    await _end_day(client, first.session, console)
    console.print(Rule("The second day: another conversation, no history"))
    answers = await _talk(client, await _open_group(client), SECOND_DAY, console)
    succeeded = any(USED in answer for answer in answers)
    what = "used" if succeeded else "NOT used"
    console.print(f"What the first day decided was {what} on the second.", markup=False)
    return succeeded


async def _open_group(client: AsyncReverie) -> GroupBody:
    return await client.create_group(AGENTS, project=PROJECT, name="bookshop")


async def _talk(client: AsyncReverie, group: GroupBody, text: str, console: Console) -> list[str]:
    """Says something, prints the answers while they come, and returns them."""
    console.print(f"\n[bold]you[/]: {text}")
    posted = await client.post_message(group.id, text)
    open_turns = OpenTurns(str(turn) for turn in posted.turns.values())
    turns = TurnOrder[EngineEvent]()
    speaker = ""
    async for _, event in client.watch_group(group.id, after=posted.after):
        for shown in turns.add(str(event.turn), event, event.type == "result"):
            if shown.type == "text_delta" and speaker != shown.agent:
                speaker = shown.agent
                console.print(f"[bold]{speaker}[/]: ", end="")
            if shown.type == "memory":
                await _print_memories(client, shown, console)
            _print_event(shown, console)
            open_turns.note(shown.type, str(shown.turn), shown.data)
        if not open_turns:
            break
    page = await client.load_conversation(group.id, after=posted.no)
    return [item.content for item in page.items if item.turn]


async def _print_memories(client: AsyncReverie, event: EngineEvent, console: Console) -> None:
    """What memory gave an agent for its turn: the first line of each."""
    for id in event.data["memories"]:
        content = (await client.get_memory(id)).content
        line = shorten(content, 100, placeholder=" ...")
        console.print(f"  {event.agent} is given: {line}", style="dim", markup=False)


def _print_event(event: EngineEvent, console: Console) -> None:
    data = event.data
    if event.type == "text_delta":
        console.print(data["text"], end="", markup=False, highlight=False)
    elif event.type == "tool_call":
        console.print(f"  [dim]{event.agent} calls {data['tool']}[/]")
    elif event.type == "result" and data["content"]:
        console.print()


async def _end_day(client: AsyncReverie, session: UUID, console: Console) -> None:
    """Ends the session, as a day ends; the dream may go on while the next day begins."""
    await client.end_session(session)
    page = await client.request(DreamPage, "GET", "/v1/dreams")
    count = len(page.items)
    dreams = "dream" if count == 1 else "dreams"
    console.print(f"  [dim]the session ends; {count} {dreams} so far[/]\n")
