"""A language model behind an endpoint: typed answers, faults, budgets, rest after failures."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel, Field

from reverie.inference.asking import LanguageEndpoint, Provider, Tally, Unanswered
from reverie.inference.breaker import Breaker
from reverie.inference.language import AT_ONCE, LanguageModel
from reverie.inference.prompts import Prompt
from reverie.store.llm import LlmDay, LlmLedger
from reverie.testing.servers import Database
from tests.integration.store_parts import Store, open_store
from tests.stack import eventually
from tests.stub_llm import TOKENS, stub_llm

TASK = Prompt("sums", 1, "Add the numbers.")


class Sum(BaseModel):
    total: int = Field(ge=0)


@asynccontextmanager
async def _asking(
    store: Store,
    url: str,
    provider: Provider = "openai",
    calls: int = 100,
    breaker: Breaker | None = None,
    **more: Any,
) -> AsyncIterator[LanguageModel]:
    address = f"{url}/v1" if provider == "openai" else url
    endpoint = LanguageEndpoint(
        provider, "stub", address, "key-1", **{"seconds": 5.0, "pause": 0.0, **more}
    )
    model = LanguageModel(endpoint, LlmLedger(store.db, calls, 10_000), breaker)
    try:
        yield model
    finally:
        await model.close()


async def test_each_wire_format_gives_a_typed_answer_and_faults_are_tried_again(
    database: Database,
) -> None:
    forms: list[tuple[Provider, str]] = [
        ("openai", "tool"),
        ("openai", "schema"),
        ("openai", "text"),
        ("anthropic", "tool"),
    ]
    async with open_store(database) as store, stub_llm() as (stub, url):
        stub.answer = lambda _: {"total": 7}
        for provider, form in forms:
            async with _asking(store, url, provider, form=form) as model:
                stub.faults = ["429", "500"]
                tally = Tally()
                told = await model.ask(store.me.tenant, TASK, "3 and 4", Sum, tally)
                assert told == Sum(total=7)
                assert (tally.calls, tally.failed, tally.degraded) == (3, 2, None)
                assert (tally.sent, tally.received) == TOKENS
                last = stub.asked[-1]
                assert last.text == "3 and 4"
                assert "Add the numbers." in last.instructions
                assert "key-1" in str(last.headers)
        ledger = LlmLedger(store.db, 100, 10_000)
        assert await ledger.today(store.me.tenant) == LlmDay(12, 8, 400, 80)
        assert await ledger.today(store.other.tenant) == LlmDay()


async def test_what_cannot_be_used_is_no_answer_and_says_why(database: Database) -> None:
    cases = [
        (["words", "words"], "shape", 2, 1),
        (["torn", "torn"], "shape", 2, 1),
        (["401"], "refused", 1, 1),
        (["broken"] * 2, "the endpoint failed", 2, 2),
        (["huge"] * 2, "does not answer", 2, 2),
        (["slow"] * 2, "too long", 2, 2),
        (["500"] * 2, "500", 2, 2),
    ]
    async with open_store(database) as store, stub_llm() as (stub, url):
        stub.answer = lambda _: {"total": 7}
        for provider in ("openai", "anthropic"):
            for faults, reason, calls, failed in cases:
                seconds = 0.5 if "slow" in faults else 5.0
                async with _asking(store, url, provider, attempts=2, seconds=seconds) as model:
                    stub.faults = list(faults)
                    tally = Tally()
                    with pytest.raises(Unanswered, match=reason):
                        await model.ask(store.me.tenant, TASK, "3", Sum, tally)
                    assert reason in str(tally.degraded)
                    assert (tally.calls, tally.failed, stub.faults) == (calls, failed, [])


async def test_a_wrong_answer_is_sent_back_once(database: Database) -> None:
    async with open_store(database) as store, stub_llm() as (stub, url):
        stub.answer = lambda asked: {"total": 7 if len(stub.asked) > 1 else -1}
        async with _asking(store, url) as model:
            tally = Tally()
            assert await model.ask(store.me.tenant, TASK, "3 and 4", Sum, tally) == Sum(total=7)
            assert (tally.calls, tally.failed, tally.tokens) == (2, 0, 2 * sum(TOKENS))


async def test_a_spent_budget_stops_its_tenant_alone_and_failures_spend_it(
    database: Database,
) -> None:
    async with open_store(database) as store, stub_llm() as (stub, url):
        stub.answer = lambda _: {"total": 7}
        async with _asking(store, url, calls=2, attempts=2) as model:
            stub.faults = ["500", "500"]
            with pytest.raises(Unanswered, match="500"):
                await model.ask(store.me.tenant, TASK, "3", Sum, Tally())
            with pytest.raises(Unanswered, match="budget"):
                await model.ask(store.me.tenant, TASK, "3", Sum, Tally())
            assert len(stub.asked) == 2
            assert await model.ask(store.other.tenant, TASK, "3", Sum, Tally()) == Sum(total=7)
        tokens = LlmLedger(store.db, 100, sum(TOKENS))
        assert await tokens.take(store.me.tenant)
        assert not await tokens.take(store.other.tenant)
        assert not await LlmLedger(store.db, 0, 100).take(store.me.tenant)
        roomy = LlmLedger(store.db, 100, 10_000)
        for own, allowed in (
            ({"calls_a_day": 0}, False),
            ({"calls_a_day": 10**6}, True),
            (None, True),
        ):
            await roomy.change(store.me.tenant, own)
            assert await roomy.take(store.me.tenant) is allowed
            assert (await roomy.limits(store.me.tenant))[0] == (100 if allowed else 0)
        await roomy.change(store.me.tenant, {"tokens_a_day": 0})
        assert not await roomy.take(store.me.tenant)
        assert await roomy.take(store.other.tenant)


async def test_an_endpoint_that_fails_rests_and_is_tried_again_by_one(database: Database) -> None:
    now = [0.0]
    async with open_store(database) as store, stub_llm() as (stub, url):
        stub.answer = lambda _: {"total": 7}
        breaker = Breaker(limit=3, seconds=60.0, clock=lambda: now[0])
        async with _asking(store, url, attempts=3, breaker=breaker) as model:
            stub.faults = ["500"] * 4
            with pytest.raises(Unanswered, match="500"):
                await model.ask(store.me.tenant, TASK, "3", Sum, Tally())
            for after, reason, asked in ((59.0, "rests", 3), (61.0, "500|rests", 4)):
                now[0] = after
                with pytest.raises(Unanswered, match=reason):
                    await model.ask(store.me.tenant, TASK, "3", Sum, Tally())
                assert len(stub.asked) == asked
            now[0] = 200.0
            stub.faults = []
            assert await model.ask(store.me.tenant, TASK, "3", Sum, Tally()) == Sum(total=7)


async def test_who_gives_up_before_the_model_was_asked_says_nothing_against_it(
    database: Database,
) -> None:
    async with open_store(database) as store, stub_llm() as (stub, url):
        stub.answer = lambda _: {"total": 7}
        stub.faults = ["slow"] * AT_ONCE
        breaker = Breaker(limit=2)
        async with _asking(store, url, breaker=breaker) as model:

            def ask() -> asyncio.Task[Sum]:
                return asyncio.create_task(
                    model.ask(store.me.tenant, TASK, "3", Sum, Tally()), name="asking"
                )

            asking = [ask() for _ in range(AT_ONCE)]
            await eventually(lambda: _true(len(stub.asked) == AT_ONCE))
            waiting = [ask() for _ in range(3)]
            taken = AT_ONCE + len(waiting)
            await eventually(lambda: _calls(store, taken))
            for task in (*waiting, *asking[:1]):
                task.cancel()
            await asyncio.wait(waiting + asking[:1])
            assert not breaker.rests()
            for task in asking:
                task.cancel()
            await asyncio.wait(asking)
            assert breaker.rests()


async def _true(fact: bool) -> bool:
    return fact


async def _calls(store: Store, count: int) -> bool:
    return (await LlmLedger(store.db, 100, 10_000).today(store.me.tenant)).calls == count


def test_a_process_that_asks_no_model_does_not_load_what_asks_it() -> None:
    """It would cost seconds and tens of megabytes."""
    code = (
        "import sys, reverie.dream.app, reverie.ingest.app, reverie.recall.app, reverie.cli.main\n"
        "print([m for m in ('pydantic_ai', 'openai', 'anthropic') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
