"""What a dream makes of sessions: pages, open topics, citations; on real Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from reverie.domain.distil import Distilled
from reverie.domain.dreaming import Limits
from reverie.domain.ids import new_id
from reverie.domain.kinds import Kind
from reverie.domain.slices import Slice
from reverie.dream.digest import dream
from reverie.dream.extract import Context, Extraction
from reverie.dream.parts import Parts
from reverie.store.sessions import NewTurn
from reverie.testing.servers import Database
from tests.integration.store_parts import Store, admin_rows, open_store
from tests.integration.test_dream_worker import HOUR, dream_parts

TOPICS = (
    "the login cookie expires and the session middleware rejects the request",
    "the revenue chart draws monthly bars with a colour legend per region",
    "the mail queue retries a letter that the post office refused for good",
)


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    async with open_store(database) as made:
        yield made


async def told(
    store: Store, parts: Parts, said: Sequence[tuple[str, str]], scope: str = "global"
) -> tuple[UUID, list[UUID]]:
    """A live session with these turns; answers its id and theirs."""
    session, _ = await parts.sessions.start(store.me, new_id(), scope, {"agent": "ann"})
    turns = [NewTurn(new_id(), role, content, content) for role, content in said]
    await parts.sessions.append(store.me, session, turns)
    return session, [turn.id for turn in turns]


async def dreamt(store: Store, parts: Parts, reason: str = "turns", scope: str = "global") -> str:
    """One dream over the scope, asked for by a reason."""
    await parts.dreams.request(store.me.tenant, "one", scope, reason, {})
    lease = await parts.dreams.claim("worker", HOUR)
    assert lease is not None
    return await dream(parts, lease)


def _talk(topic: str) -> list[tuple[str, str]]:
    return [
        ("user", f"Find out why {topic}"),
        ("assistant", f"It is so because {topic}, as src/{topic.split()[1]}.py says."),
    ]


def undigested(store: Store) -> list[UUID]:
    found = admin_rows(store.admin_url, "select id from turn where run is null order by ord")
    return [row[0] for row in found]


async def test_a_live_sessions_open_topic_waits_for_its_end_or_silence(store: Store) -> None:
    parts = dream_parts(store)
    session, turns = await told(store, parts, [said for topic in TOPICS for said in _talk(topic)])
    assert await dreamt(store, parts) == "done"
    assert undigested(store) == turns[4:]
    assert await dreamt(store, parts) == "done"
    assert undigested(store) == turns[4:]
    await parts.sessions.append(store.me, session, [NewTurn(new_id(), "user", "yes", "yes")])
    quiet = replace(parts, settings=replace(parts.settings, limits=Limits(idle_minutes=1e-9)))
    assert await dreamt(store, quiet) == "done"
    assert undigested(store) == []
    kept = str(admin_rows(store.admin_url, "select content from memory where status = 'active'"))
    assert all(topic[:30] in kept for topic in TOPICS)


@pytest.mark.parametrize("batch", [3, 5, 200])
async def test_a_long_session_is_digested_page_by_page_and_every_turn_once(
    store: Store, batch: int
) -> None:
    parts = dream_parts(store)
    paged = replace(parts, settings=replace(parts.settings, batch=batch, whole=4))
    session, turns = await told(store, parts, [said for topic in TOPICS for said in _talk(topic)])
    await parts.sessions.end(store.me, session, None)
    assert await dreamt(store, paged) == "done"
    assert undigested(store) == []
    [run] = await parts.dreams.runs(store.me, None, None, 1)
    assert run.turns == len(turns)
    kept = admin_rows(store.admin_url, "select content from memory where status = 'active'")
    assert all(any(topic[:30] in row[0] for row in kept) for topic in TOPICS)


class _Inventive:
    """Cites what it was not given: nothing, or turns of elsewhere."""

    async def extract(self, part: Slice, context: Context) -> Extraction:
        first = part.turns[0]
        cites = {"nothing": (), "elsewhere": (UUID(int=1),), "both": (first.id, UUID(int=2))}
        made = [
            Distilled(f"We always cite {name} in what we write.", Kind.CONVENTION, (), 0.9, (), to,
                      first.at)
            for name, to in cites.items()
        ]  # fmt: skip
        return Extraction(made, by="inventive-1")


async def test_what_cites_no_turn_of_its_slice_is_refused(store: Store) -> None:
    parts = replace(dream_parts(store), extractor=_Inventive())
    _, turns = await told(store, parts, _talk(TOPICS[0]))
    assert await dreamt(store, parts, "asked") == "done"
    kept = admin_rows(
        store.admin_url,
        "select m.content, t.turn from memory m join memory_turn t on t.memory = m.id"
        " where m.kind = 'convention'",
    )
    assert kept == [("We always cite both in what we write.", turns[0])]
