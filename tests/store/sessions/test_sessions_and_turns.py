"""Sessions start once, and turns are appended once and numbered without gaps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from reverie.domain.core.errors import Conflict, NotFound
from reverie.domain.core.ids import new_id
from reverie.store.sessions.sessions import AppendResult, SessionStore, TurnToAppend
from tests.support.store_setup import Store, admin_rows, principal


@pytest.fixture
def store(shared_store: Store) -> Store:
    return shared_store


@pytest.fixture
def sessions(store: Store) -> SessionStore:
    return SessionStore(store.db)


def _turn(text: str, external_id: str | None = None) -> TurnToAppend:
    return TurnToAppend(new_id(), "user", text, text, external_id=external_id)


async def test_a_session_is_started_once_under_its_external_id(
    store: Store, sessions: SessionStore
) -> None:
    fields = {"agent": "ann", "external_id": "x1"}
    found = await asyncio.gather(
        *(sessions.start(store.me, new_id(), "global", fields) for _ in range(10))
    )
    assert len({session for session, _ in found}) == 1
    held = "select count(*) from session where tenant = %s"
    assert admin_rows(store.admin_url, held, store.me.tenant) == [(1,)]


async def test_an_external_id_belongs_to_one_agent_and_tenant_and_none_is_distinct(
    store: Store, sessions: SessionStore
) -> None:
    begun = {
        (await sessions.start(who, new_id(), "global", {"agent": agent, "external_id": "x"}))[0]
        for who in (store.me, store.other)
        for agent in ("ann", "bob")
    }
    begun |= {
        (await sessions.start(store.me, new_id(), "global", {"agent": "ann"}))[0] for _ in "ab"
    }
    assert len(begun) == 6


async def test_a_restarted_session_keeps_its_scope_and_learns_its_branch(
    store: Store, sessions: SessionStore
) -> None:
    fields = {"agent": "ann", "external_id": "x"}
    first = await sessions.start(store.me, new_id(), "project/p", fields)
    again = await sessions.start(store.me, new_id(), "global", {**fields, "branch": "main"})
    assert again == first
    assert (await sessions.get(store.me, first[0])).branch == "main"


async def test_a_session_elsewhere_is_unchanged_by_a_key_that_may_not_write_there(
    store: Store, sessions: SessionStore
) -> None:
    fields = {"agent": "ann", "external_id": "x", "branch": "main"}
    await sessions.start(store.me, new_id(), "project/p", fields)
    stranger = principal(store.me.tenant, "one", writes=("project/q/*",))
    with pytest.raises(Conflict, match="stands for a session elsewhere: choose another"):
        await sessions.start(stranger, new_id(), "project/q", {**fields, "branch": "theirs"})
    held = "select scope, branch from session where tenant = %s"
    assert admin_rows(store.admin_url, held, store.me.tenant) == [("project/p", "main")]


async def test_a_transcript_is_read_by_its_own_agent_only(
    store: Store, sessions: SessionStore
) -> None:
    session, _ = await sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    assert (await sessions.get(store.me, session)).agent == "ann"
    assert (await sessions.get(principal(store.me.tenant, "one", agent="ann"), session)).turns == 0
    for stranger in (
        principal(store.me.tenant, "one", agent="bob"),
        principal(store.me.tenant, "one", reads=("project/*",)),
        store.other,
    ):
        with pytest.raises(NotFound):
            await sessions.get(stranger, session)


async def test_turns_with_a_known_external_id_are_skipped(
    store: Store, sessions: SessionStore
) -> None:
    session, _ = await sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    told = [_turn("one", "1"), _turn("two", "2"), _turn("one again", "1"), _turn("free")]
    first = await sessions.append(store.me, session, told)
    assert first == AppendResult(3, 1, "global", 3, len("onetwofree"), None)
    again = await sessions.append(store.me, session, [_turn("one", "1"), _turn("three", "3")])
    assert (again.accepted, again.duplicates, again.pending) == (1, 1, 4)
    stored = await sessions.list_turns(store.me, session, -1, 100)
    assert [(t.ordinal, t.content) for t in stored] == [
        (0, "one"),
        (1, "two"),
        (2, "free"),
        (3, "three"),
    ]


async def test_concurrent_appenders_of_the_same_turns_number_them_once_without_gaps(
    store: Store, sessions: SessionStore
) -> None:
    session, _ = await sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    batches = [[_turn(f"{w} {n}", f"{w}-{n}") for n in range(10)] for w in range(8)]
    sent = [sessions.append(store.me, session, batch) for batch in batches * 2]
    assert sum(one.accepted for one in await asyncio.gather(*sent)) == 80
    stored = await sessions.list_turns(store.me, session, -1, 1000)
    assert [turn.ordinal for turn in stored] == list(range(80))
    for batch in batches:
        places = [t.ordinal for t in stored if t.external_id in {b.external_id for b in batch}]
        assert places == list(range(places[0], places[0] + 10))
    held = "select turns, pending from session where tenant = %s"
    [counts] = admin_rows(store.admin_url, held, store.me.tenant)
    assert counts == (80, 80)


async def test_a_turn_keeps_its_time_and_tool(store: Store, sessions: SessionStore) -> None:
    session, _ = await sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    at = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
    turn = TurnToAppend(new_id(), "tool", "output", "output", tool="bash", at=at)
    await sessions.append(store.me, session, [turn])
    [stored] = await sessions.list_turns(store.me, session, -1, 1)
    assert (stored.at, stored.tool, stored.role, stored.digested) == (at, "bash", "tool", False)


async def test_a_session_of_another_tenant_or_a_missing_one_takes_no_turns(
    store: Store, sessions: SessionStore
) -> None:
    session, _ = await sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    for who, target in ((store.other, session), (store.me, uuid4())):
        with pytest.raises(NotFound):
            await sessions.append(who, target, [_turn("hello")])
    held = "select count(*) from turn where tenant in (%s, %s)"
    both = (store.me.tenant, store.other.tenant)
    assert admin_rows(store.admin_url, held, *both) == [(0,)]


async def test_a_session_ends_once_and_keeps_the_first_time(
    store: Store, sessions: SessionStore
) -> None:
    session, _ = await sessions.start(store.me, new_id(), "project/p", {"agent": "ann"})
    await sessions.append(store.me, session, [_turn("hello")])
    assert await sessions.end(store.me, session, "done") == ("project/p", 1)
    first = await sessions.get(store.me, session)
    await sessions.end(store.me, session, None)
    again = await sessions.get(store.me, session)
    assert (again.ended, again.summary) == (first.ended, "done")
