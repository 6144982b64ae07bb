"""NATS, or the way to Postgres, is gone for a while in the middle of a turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from reverie.runtime.settings.field_types import require_secret
from reverie.testing.chaos_proxy import ChaosProxy
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from reverie.testing.servers import NatsServer
from tests.engine.conftest import Engine, open_engine
from tests.support.stack import VAULT_KEY, Stack

SAID = "one two three four five six seven eight"


async def test_an_outage_in_a_turn_loses_and_doubles_nothing(
    alone: Stack, nats_server: NatsServer, tmp_path: Path
) -> None:
    url = urlsplit(require_secret(alone.settings.database_url, "database_url"))
    assert url.hostname
    async with ChaosProxy(url.hostname, url.port or 5432) as postgres:
        netloc = f"{url.netloc.rpartition('@')[0]}@127.0.0.1:{postgres.port}"
        database = SecretStr(url._replace(netloc=netloc).geturl())
        own = {"vault_key": SecretStr(VAULT_KEY), "database_url": database}
        async with open_engine(alone, tmp_path, **own) as service:
            engine = Engine(alone, service)
            await _restart_nats(engine, nats_server)
            await _cut_off_postgres(engine, postgres)


async def _restart_nats(engine: Engine, nats: NatsServer) -> None:
    """The model goes on meanwhile, hands on, and is done before NATS is there again."""
    released: list[bool] = []

    def script(asked: ChatRequest) -> ChatAnswer:
        if "name is rams" in asked.system:
            return ChatAnswer("Green.")
        if asked.is_after_tool:
            return ChatAnswer(SAID)
        call = ToolUse("route_forward", {"agent": "rams", "task": "Colour?"})
        return ChatAnswer("Well. ", calls=(call,), hold=lambda: bool(released))

    engine.play(script)
    group = await engine.group("beck", "rams")
    posted = await engine.post(group, "Count.")
    first = await engine.watch(group, posted["after"], until="text_delta")
    await asyncio.to_thread(nats.stop)
    watching = asyncio.create_task(engine.watch(group, first[-1]["at"]))
    released.append(True)
    await engine.turn(group, "beck", "done")
    await asyncio.to_thread(nats.start)
    turns = await engine.ended(group, posted)
    assert {turn["status"] for turn in turns.values()} == {"done"}
    assert sorted(await engine.answers(group)) == ["Green.", SAID]
    rest = await watching
    rest += await engine.watch(group, rest[-1]["at"])
    of_beck = [event for event in [*first, *rest] if event["agent"] == "beck"]
    assert _text(of_beck) == f"Well. {SAID}"
    kinds = [event["type"] for event in of_beck]
    assert (kinds.count("handed_on"), kinds.count("stop"), kinds.count("result")) == (1, 1, 1)


async def _cut_off_postgres(engine: Engine, postgres: ChaosProxy) -> None:
    """The answer cannot be stored at once: the turn is taken up again, and answers once."""
    released: list[bool] = []
    engine.play(lambda _: ChatAnswer(SAID, hold=lambda: bool(released)))
    group = await engine.group("beck")
    posted = await engine.post(group, "Count.")
    first = await engine.watch(group, posted["after"], until="text_delta")
    postgres.reset_connections()
    released.append(True)
    postgres.restore()
    rest = await engine.watch(group, first[-1]["at"])
    seen = [*first, *rest]
    newest = max(event["epoch"] for event in seen if event["type"] == "text_delta")
    assert _text([event for event in seen if event["epoch"] == newest]) == SAID
    await engine.ended(group, posted)
    assert await engine.answers(group) == [SAID]


def _text(seen: list[dict[str, Any]]) -> str:
    return "".join(event["data"]["text"] for event in seen if event["type"] == "text_delta")
