"""Scope summaries follow changes, are versioned, and stay within their cap."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from reverie.domain.context.scope_summary import summarize_memories
from reverie.domain.core.kinds import Kind
from reverie.store.memories.edits import EditStore, MemoryChange
from reverie.store.memories.export_import import ScopeNoteStore
from reverie.store.memories.memories import MemoryStore
from reverie.store.sessions.context import ContextStore
from reverie.store.sessions.summaries import StoredSummary, SummaryStore
from reverie_services.dream.dependencies import DigestDependencies
from tests.dream.test_dream_worker import dream_parts
from tests.dream.test_session_digest import dreamt
from tests.support.store_setup import Store, admin_rows, new

KINDS = (Kind.DECISION, Kind.BUG, Kind.CONVENTION, Kind.REFERENCE)


async def _dream(store: Store, parts: DigestDependencies) -> StoredSummary | None:
    """The summary after a dream."""
    assert await dreamt(store, parts, "asked") == "done"
    found = await parts.summaries.page(store.me, "global", None, 2)
    return found[0] if found else None


async def _whole(store: Store, parts: DigestDependencies, cap: int) -> str:
    memories = admin_rows(
        store.admin_url, "select id from memory where status = 'active' and scope = 'global'"
    )
    ids = [row[0] for row in memories]
    found = [await MemoryStore(store.db).get(store.me, one) for one in ids]
    return summarize_memories(found, parts.token_counter.count, cap).text


async def _injected(store: Store) -> str:
    return dict((await ContextStore(store.db).load(store.me, ["global"])).summaries).get(
        "global", ""
    )


class _Counting(SummaryStore):
    """How often the whole scope was read."""

    whole = 0

    async def list_memories(self, *args: Any) -> Any:
        self.whole += 1
        return await super().list_memories(*args)


async def _forget(store: Store, id: Any) -> None:
    change = MemoryChange({"status": "deleted"}, "gone", "forgotten")
    await EditStore(store.db).change(store.me, id, change, {})


async def test_an_incremental_summary_equals_a_full_one(store: Store) -> None:
    chance = random.Random(7)
    summaries = _Counting(store.db)
    parts = replace(dream_parts(store), summaries=summaries)
    memories, known = MemoryStore(store.db), []
    for round_ in range(12):
        for n in range(chance.randrange(4)):
            one = new(f"fact {round_}.{n} stands", kind=chance.choice(KINDS), key=f"k{n}",
                      supersede_reason="it went on", confidence=chance.random())  # fmt: skip
            known.append(one)
            await memories.remember(store.me, [one], {})
        if known and chance.random() < 0.7:
            gone = chance.choice(known)
            known.remove(gone)
            if admin_rows(store.admin_url, "select 1 from memory where id = %s and"
                          " status = 'active'", gone.id):  # fmt: skip
                await _forget(store, gone.id)
        if known and chance.random() < 0.5:
            said = replace(chance.choice(known), id=new("x").id, supersede_reason=None)
            await memories.remember(store.me, [said], {})
        told = await _dream(store, parts)
        assert (told.content if told else "") == await _whole(store, parts, 800)
    assert summaries.whole == 1


async def test_a_summary_is_versioned_and_removed_memories_are_left_out(store: Store) -> None:
    parts, memories = dream_parts(store), MemoryStore(store.db)
    first, second = new("Use NATS", kind=Kind.DECISION), new("Run the linter", kind=Kind.CONVENTION)
    await memories.remember(store.me, [first, second], {})
    one = await _dream(store, parts)
    assert one is not None
    assert one.content == "## Conventions\n- Run the linter\n\n## Decisions\n- Use NATS"
    assert [(rest.memory, rest.current) for rest in one.sources] == [
        (second.id, True),
        (first.id, True),
    ]
    assert await _dream(store, parts) == one
    await _forget(store, first.id)
    assert await _injected(store) == "## Conventions\n- Run the linter"
    [now] = await parts.summaries.page(store.me, None, None, 9)
    assert (now.content, now.sources[1].current) == ("## Conventions\n- Run the linter", False)
    notes = await ScopeNoteStore(store.db).load_scope(store.me, "global")
    assert notes[1] == "## Conventions\n- Run the linter"
    newer = new("Use ruff", kind=Kind.CONVENTION)
    await memories.remember(store.me, [newer], {})
    two = await _dream(store, parts)
    assert two is not None
    assert (two.version, two.content) == (2, "## Conventions\n- Use ruff\n- Run the linter")
    told = await parts.summaries.list_versions(store.me, "global", None, 9)
    assert [(each.version, each.content) for each in told] == [
        (2, two.content),
        (1, "## Conventions\n- Run the linter"),
    ]
    assert await parts.summaries.list_versions(store.me, "global", 2, 9) == told[1:]
    for each in (second, newer):
        await _forget(store, each.id)
    three = await _dream(store, parts)
    assert three is not None
    assert (three.version, three.content, three.sources) == (3, "", ())


async def test_a_truncated_summary_stays_within_its_cap_and_is_refilled(store: Store) -> None:
    summaries = _Counting(store.db)
    made = dream_parts(store)
    parts = replace(
        made, summaries=summaries, settings=replace(made.settings, max_summary_tokens=120)
    )
    many = [new(f"Decision {n}: the cart of shop {n} is kept in cents and never in floats",
                kind=Kind.DECISION, confidence=n / 100) for n in range(40)]  # fmt: skip
    await MemoryStore(store.db).remember(store.me, many, {})
    one = await _dream(store, parts)
    assert one is not None
    assert "Decision 39" in one.content
    assert one.tokens <= 120
    assert await _dream(store, parts) == one
    assert summaries.whole == 1
    await MemoryStore(store.db).remember(store.me, [new("Run ruff", kind=Kind.CONVENTION)], {})
    two = await _dream(store, parts)
    assert two is not None
    assert "Run ruff" in two.content
    for gone in many[36:]:
        await _forget(store, gone.id)
    three = await _dream(store, parts)
    assert three is not None
    assert "Decision 35" in three.content
    assert three.content == await _whole(store, parts, 120)
