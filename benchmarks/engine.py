"""Measures what memory changes in conversations of the engine over two days.

On the first day something is decided, by a word. On the second day another conversation asks for
work that the decision is about: once in the project that knows it, once in one that does not.
`--notes` says how many other memories the project has, among which recall must choose. Counted is
whether the answer keeps the decision, goes against it, or asks again; and the tokens of
a turn. The model is scripted and knows only its prompt: what it was not given it asks, or it takes
the usual way. `REVERIE_ENGINE_MODELS` names a real one, whose answers are judged by the words.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass

from pydantic import SecretStr

from benchmarks.support.common import open_quiet_run, parser, show
from benchmarks.support.generated_texts import memory
from reverie.client import AsyncReverie
from reverie.runtime.service import start_service
from reverie.testing import servers
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse, chat_server
from reverie.testing.models import model_home
from reverie_services.engine import app
from tests.support.stack import VAULT_KEY, Stack, running_stack


@dataclass(frozen=True)
class Case:
    """A decision, the work on the next day, the word that keeps it, and that of the usual way."""

    decision: str
    work: str
    kept: str
    usual: str


CASES = (
    Case("Prices are kept as integer cents; floats lost money.", "Add a price.", "cents", "float"),
    Case("Dates are stored in UTC, for all zones.", "Store the order date.", "utc", "local"),
    Case("Background work runs on NATS, not Celery.", "Queue the export.", "nats", "celery"),
    Case("We deploy by tag through staging only.", "Deploy the fix.", "staging", "main"),
    Case("Identifiers are UUIDv7, as they sort by time.", "Add an id column.", "uuidv7", "serial"),
    Case("HTTP calls use httpx with a timeout.", "Call the tax service.", "httpx", "requests"),
    Case("Tests use real Postgres, not SQLite.", "Write a store test.", "postgres", "sqlite"),
    Case("Feature flags live in the settings table.", "Add a flag.", "table", "constant"),
)


def main() -> int:
    """Prints the figures."""
    asked = parser(__doc__)
    asked.add_argument("--notes", type=int, default=200)
    given = asked.parse_args()
    with (
        open_quiet_run() as run,
        servers.fresh_database(run) as database,
        servers.own_nats(run) as nats,
    ):
        asyncio.run(_measure(database, nats.url, given.notes))
    return 0


def answer_scripted(asked: ChatRequest) -> ChatAnswer:
    """Remembers what it is told to; does what its prompt says; else asks, or does the usual."""
    # What was recalled is the last text, and what was said comes before it.
    said = " ".join(asked.texts)
    for case in CASES:
        if asked.is_after_tool:
            return ChatAnswer("Remembered.")
        if f"Remember: {case.decision}" in said:
            call = ToolUse("remember", {"content": case.decision, "kind": "decision"})
            return ChatAnswer(calls=(call,))
        if case.work in said:
            if case.decision in said:
                return ChatAnswer(f"Done with {case.kept}.")
            is_cautious = CASES.index(case) % 2 == 0
            unknown = f"{case.kept} or {case.usual}?" if is_cautious else f"Done: {case.usual}."
            return ChatAnswer(unknown)
    return ChatAnswer("I do not know.")


async def _measure(database: servers.DatabaseUrls, nats_url: str, notes: int) -> None:
    async with (
        chat_server(answer_scripted, estimates_tokens=True) as models,
        running_stack(database, nats_url, model_home(), vault_key=VAULT_KEY) as stack,
    ):
        scripted = {"provider": "openai", "model": "scripted", "url": f"{models.url}/v1"}
        endpoints = os.environ.get("REVERIE_ENGINE_MODELS") or json.dumps({"default": scripted})
        settings = stack.settings.model_copy(
            update={"gateway_url": stack.url, "engine_models": SecretStr(endpoints)}
        )
        async with app.open_service(settings) as service, start_service(service, settings) as url:
            for number in range(notes):
                note = {"content": memory(number), "scope": "project/known", "kind": "context"}
                await stack.post("/v1/remember", note)
            await stack.settled(seconds=120)
            rows = await _play(stack, url)
    show(
        f"{len(CASES)} decisions among {notes} notes, used on the next day",
        ["", "kept", "against", "asked again", "tokens of a turn"],
        rows,
    )


async def _play(stack: Stack, url: str) -> list[list[object]]:
    async with AsyncReverie(url, stack.key, timeout=120) as reverie:
        for case in CASES:
            await _turn(reverie, "known", f"Remember: {case.decision}")
        rows = []
        for title, project in (("with memory", "known"), ("without", "unknown")):
            verdicts: Counter[str] = Counter()
            tokens = 0
            for case in CASES:
                answer, used = await _turn(reverie, project, case.work)
                verdicts[_judge(case, answer)] += 1
                tokens += used
            counts = [verdicts[name] for name in ("kept", "against", "asked")]
            rows.append([title, *counts, tokens // len(CASES)])
    return rows


async def _turn(reverie: AsyncReverie, project: str, text: str) -> tuple[str, int]:
    """The answer of one conversation, and the tokens that it took."""
    group = await reverie.create_group(["beck"], project=project)
    posted = await reverie.post_message(group.id, text)
    async for _, event in reverie.watch_group(group.id, after=posted.after):
        if event.type == "result":
            page = await reverie.load_conversation(group.id)
            return str(event.data["content"]), page.turns[0].tokens
    return "", 0


def _judge(case: Case, answer: str) -> str:
    said = answer.lower()
    if "?" in said:
        return "asked"
    return "kept" if case.kept in said else "against"


if __name__ == "__main__":
    sys.exit(main())
