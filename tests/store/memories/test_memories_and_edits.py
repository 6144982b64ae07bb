"""Writing, reading and editing memories in the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    PreconditionFailed,
)
from reverie.domain.core.ids import new_id, short_id
from reverie.domain.core.kinds import EdgeKind, Kind, Tier
from reverie.domain.core.memory import MemoryStatus, WriteOutcome, WriteResult
from reverie.store.memories.edits import EditStore
from reverie.store.memories.memories import ListFilter, build_events
from reverie.testing.servers import DatabaseUrls
from tests.store.memories.memory_access import ALL, HOME, SHOP, MemoryAccess, edge, worded
from tests.support.store_setup import admin_rows, new, open_store_apart

NEW_YEAR, JULY = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
async def side(shared_database: DatabaseUrls) -> AsyncIterator[MemoryAccess]:
    async with open_store_apart(shared_database, size=2) as store:
        yield MemoryAccess(
            store.memories, EditStore(store.db), store.me, store.other, store.admin_url
        )


def written(found: object) -> WriteResult:
    assert isinstance(found, WriteResult), found
    return found


async def test_a_written_memory_is_read_back_completely(side: MemoryAccess) -> None:
    said: dict[str, Any] = {
        "scope": SHOP, "key": "deploy", "summary": "how", "tags": ("ops", "ci"), "pinned": True,
        "confidence": 0.7, "agent": "ann", "git": {"commit": "abc"},
        "metadata": {"a": [1, None, "x"]}, "session": new_id(), "turns": (new_id(),),
        "valid_from": NEW_YEAR, "valid_to": JULY,
    }  # fmt: skip
    item = new("deploy on Mondays", kind=Kind.CONVENTION, **said)
    answer = written((await side.tell(item))[0])
    assert (answer.id, answer.outcome, answer.version) == (item.id, WriteOutcome.CREATED, 1)
    assert answer.event is not None
    found = await side.get(item.id)
    assert {name: getattr(found, name) for name in said} == said | {"tags": ("ci", "ops")}
    assert (found.content, found.content_hash) == (item.content, item.content_hash)
    assert found.source == item.source
    assert (found.kind, found.tier, found.status) == (
        Kind.CONVENTION,
        Tier.HOT,
        MemoryStatus.ACTIVE,
    )
    assert (found.version, found.enriched, found.staleness) == (1, False, 0.0)
    assert found.created_at == found.updated_at


async def test_another_tenant_finds_none_of_my_memories(side: MemoryAccess) -> None:
    cause = await side.told("a cause")
    mine = await side.told("an effect", edges=(edge(cause),))
    with pytest.raises(NotFound):
        await side.memories.get(side.other, mine)
    with pytest.raises(NotFound):
        await side.memories.resolve(side.other, short_id(mine))
    with pytest.raises(NotFound):
        await side.change(mine, who=side.other, pinned=True)
    with pytest.raises(NotFound):
        await side.memories.get_with_neighbours(side.other, mine)
    assert await side.listed(who=side.other) == []
    assert await side.edits.history(side.other, mine, 9, 9) == []
    assert await side.told("an effect", who=side.other) != mine


async def test_a_key_sees_what_its_grants_cover(side: MemoryAccess) -> None:
    hidden = await side.told("at home", scope=HOME)
    seen = await side.told("in the shop", scope=f"{SHOP}/topic/till", edges=(edge(hidden),))
    assert await side.listed(who=side.of_shop) == [seen]
    assert (await side.memories.get(side.of_shop, seen)).id == seen
    assert (await side.memories.get_with_neighbours(side.of_shop, seen))[1] == []
    for memory in (hidden, new_id()):
        with pytest.raises(NotFound) as caught:
            await side.memories.get(side.of_shop, memory)
        assert str(caught.value) == f"no memory {memory} that this key may read"


async def test_an_id_is_given_in_full_or_by_its_suffix(side: MemoryAccess) -> None:
    memory = await side.told("findable")
    for text in (str(memory), memory.hex, short_id(memory)):
        assert await side.memories.resolve(side.me, text) == memory
    with pytest.raises(NotFound):
        await side.memories.resolve(side.me, short_id(new_id()))
    with pytest.raises(InvalidInput, match="id: 'no id' is not an id"):
        await side.memories.resolve(side.me, "no id")


async def test_a_suffix_shared_by_two_ids_is_refused(side: MemoryAccess) -> None:
    for first in "12":
        await side.told(first, id=UUID(f"{first}0000000-0000-7000-8000-0000deadbeef"))
    with pytest.raises(InvalidInput, match="deadbeef means several memories"):
        await side.memories.resolve(side.me, "deadbeef")


async def test_a_repeated_memory_gains_confidence_and_missing_fields(side: MemoryAccess) -> None:
    cause, git = await side.told("cause"), {"branch": "main", "files": ["a.py"]}
    first = await side.told("tabs", tags=("b",), metadata={"a": 1}, git=git)
    again = new(
        "tabs",
        tags=("a",),
        metadata={"a": 2, "b": 3},
        summary="s",
        pinned=True,
        git={"branch": "x"},
        edges=(edge(cause, EdgeKind.CAUSED_BY),),
    )
    answer = written((await side.tell(again))[0])
    assert answer == WriteResult(first, WriteOutcome.DUPLICATE, 2, None)
    assert build_events(side.me, answer, {}) == []
    found = await side.get(first)
    assert [(n.id, n.type) for n in await side.near(first)] == [(cause, "led_to")]
    assert found.git == git
    assert (found.confidence, found.pinned, found.summary) == (0.85, True, "s")
    assert (found.tags, found.metadata) == (("a", "b"), {"a": 1, "b": 3})
    for _ in range(4):
        await side.tell(new("tabs", summary="other"))
    found = await side.get(first)
    assert (found.confidence, found.pinned, found.summary) == (1.0, True, "s")
    assert await side.told("tabs", scope=SHOP) != first


async def test_adding_git_data_to_a_memory_is_a_version(side: MemoryAccess) -> None:
    first = await side.told("placed")
    enriched = "update memory set enriched_version = version where id = %s"
    admin_rows(side.admin_url, enriched, first)
    answer = written((await side.tell(new("placed", git={"commit": "abc"}, agent="ann")))[0])
    assert (answer.outcome, answer.version) == (WriteOutcome.DUPLICATE, 2)
    assert answer.event is not None
    assert [event.id for event in build_events(side.me, answer, {})] == [answer.event]
    found = await side.get(first)
    assert (found.git, found.enriched) == ({"commit": "abc"}, False)
    newest, _ = await side.history(first)
    assert (newest.actor, newest.reason) == ("ann", "its place in git became known")


async def test_a_key_in_use_is_a_conflict_that_shows_the_current_memory(side: MemoryAccess) -> None:
    first = await side.told("port 80", scope=SHOP, key="port")
    refused, landed = await side.tell(new("port 81", scope=SHOP, key="port"), new("else"))
    assert isinstance(refused, Conflict)
    assert str(refused) == (
        f"key 'port' is active in {SHOP}: give a supersede reason to replace it"
    )
    assert refused.current == {"id": str(first), "content": "port 80", "version": 1}
    assert await side.listed() == [written(landed).id, first]


async def test_a_reason_supersedes_the_memory_of_a_key(side: MemoryAccess) -> None:
    old = await side.told("port 80", key="port", pinned=True)
    item = new("port 81", key="port", supersede_reason="moved", agent="ann")
    answer = written((await side.tell(item))[0])
    assert (answer.outcome, answer.version) == (WriteOutcome.SUPERSEDED, 1)
    before = await side.get(old)
    assert (before.status, before.version) == (MemoryStatus.SUPERSEDED, 2)
    assert (before.superseded_by, before.valid_to is None) == (item.id, False)
    assert not (await side.get(item.id)).pinned
    (near,) = await side.near(item.id)
    assert (near.id, near.type, near.direction, near.label) == (old, "supersedes", "out", "port")
    newest, _ = await side.history(old)
    assert (newest.status, newest.actor, newest.reason) == ("superseded", "ann", "moved")


async def test_a_soft_correction_keeps_confidence_and_pin(
    side: MemoryAccess,
) -> None:
    await side.told("prot 80", key="port", pinned=True, confidence=0.9)
    new_one = await side.told("port 80", key="port", supersede_reason="typo", soft=True)
    found = await side.get(new_one)
    assert (found.confidence, found.pinned) == (0.9, True)


async def test_one_content_may_be_stored_under_several_keys(side: MemoryAccess) -> None:
    ids = [await side.told("the same", key=key) for key in (None, "a", "b")]
    assert await side.listed() == ids[::-1]


async def test_an_edge_can_only_lead_to_a_readable_memory(side: MemoryAccess) -> None:
    hidden = await side.told("at home", scope=HOME)
    theirs = await side.told("of another tenant", who=side.other)
    for to in (hidden, theirs, new_id()):
        refused, landed = await side.tell(
            new("linked", scope=SHOP, edges=(edge(to),)),
            new(f"plain {to}", scope=SHOP),
            who=side.of_shop,
        )
        assert str(refused) == f"edges: there is no memory {to} to link to"
        assert written(landed).outcome is WriteOutcome.CREATED


@pytest.mark.parametrize("kind", ["caused_by", "supersedes", "learned_in", "part_of"])
async def test_no_effect_precedes_its_cause(side: MemoryAccess, kind: str) -> None:
    cause = await side.told("cause", key="c")
    effect = await side.told("effect", edges=(edge(cause, EdgeKind(kind)),))
    middle = await side.told("middle", edges=(edge(effect, EdgeKind.CAUSED_BY),))
    closing = new("cause", key="c", tags=("new",), edges=(edge(middle, EdgeKind.CAUSED_BY),))
    refused, landed = await side.tell(closing, new("plain"))
    assert str(refused) == "edges: an edge would close a causal cycle"
    assert await side.listed() == [written(landed).id, middle, effect, cause]
    unchanged = await side.get(cause)
    assert (unchanged.tags, unchanged.confidence) == ((), 0.8)


async def test_relations_may_form_circles_but_not_lead_to_themselves(side: MemoryAccess) -> None:
    first = await side.told("first")
    second = await side.told("second", edges=(edge(first),))
    (again,) = await side.tell(new("first", edges=(edge(second),)))
    assert written(again).id == first
    (refused,) = await side.tell(new("first", edges=(edge(first),)))
    assert str(refused) == "edges: an edge would lead from the memory to itself"


async def test_neighbours_are_seen_from_both_ends_strongest_first(side: MemoryAccess) -> None:
    weak, strong = await side.told("weak"), await side.told("strong", key="s")
    edges = (edge(weak, weight=0.25), edge(strong, EdgeKind.CAUSED_BY, 0.5))
    middle = await side.told("middle", edges=edges)
    seen = [(n.id, n.label, n.type, n.direction, n.weight) for n in await side.near(middle)]
    assert seen == [
        (strong, "s", "led_to", "in", 0.5),
        (weak, "weak", "relates_to", "out", 0.25),
    ]
    assert [(n.id, n.direction) for n in await side.near(strong)] == [(middle, "out")]
    for weight in (0.75, 0.125):
        await side.tell(new("middle", edges=(edge(weak, weight=weight),)))
    assert [n.weight for n in await side.near(middle)] == [0.75, 0.5]
    assert len((await side.memories.get_with_neighbours(side.me, middle, limit=1))[1]) == 1


async def test_a_list_continues_after_the_last_item_and_can_be_filtered(side: MemoryAccess) -> None:
    session = new_id()
    plain = await side.told("plain")
    bug = await side.told("bug", kind=Kind.BUG, scope=SHOP, tags=("x",), session=session)
    node = await side.told("src/till.py", kind=Kind.FILE, scope=SHOP)
    last = await side.told("last", scope=SHOP, key="end")
    assert await side.listed() == [last, bug, plain]
    below = await side.memories.page(side.me, last, 1, ListFilter())
    assert [memory.id for memory in below] == [bug]
    for only, ids in (
        (ListFilter(scope=SHOP), [last, bug]),
        (ListFilter(kinds=["bug", "file"]), [node, bug]),
        (ListFilter(tag="x"), [bug]),
        (ListFilter(session=session), [bug]),
        (ListFilter(key="end"), [last]),
        (ListFilter(status=["archived"]), []),
    ):
        assert await side.listed(only) == ids, only


async def test_a_list_shows_what_was_true_at_a_moment(side: MemoryAccess) -> None:
    always = await side.told("always")
    until = await side.told("until July", valid_to=JULY)
    since = await side.told("since July", valid_from=JULY)
    assert await side.listed(ListFilter(valid_at=NEW_YEAR)) == [until, always]
    assert await side.listed(ListFilter(valid_at=JULY)) == [since, always]


async def test_a_change_is_a_version_with_author_and_reason(side: MemoryAccess) -> None:
    memory = await side.told("frist", agent="ann", tags=("a",))
    bob = replace(side.me, agent="bob")
    changed = await side.change(memory, who=bob, expected=1, tags=["b", "c"], **worded("first"))
    assert changed.version == 2
    assert [event.subject for event in changed.events] == [
        "memory.one.edited",
        "memory.one.remembered",
    ]
    await side.change(memory, kind="lesson", confidence=0.5, valid_from=JULY.isoformat())
    found = await side.get(memory)
    assert (found.content, found.tags, found.kind) == ("first", ("b", "c"), Kind.LESSON)
    assert (found.confidence, found.valid_from, found.version) == (0.5, JULY, 3)
    history = await side.history(memory)
    assert [(v.version, v.content, v.kind, v.tags, v.actor, v.reason) for v in history] == [
        (3, "first", "lesson", ["b", "c"], "key key", "on purpose"),
        (2, "first", "context", ["b", "c"], "bob", "on purpose"),
        (1, "frist", "context", ["a"], "ann", "remembered"),
    ]
    assert history[0].known_to is None
    assert [v.known_to for v in history[1:]] == [v.known_from for v in history[:-1]]
    assert [v.version for v in await side.history(memory, below=3, limit=1)] == [2]


async def test_an_edit_that_changes_nothing_is_no_version(side: MemoryAccess) -> None:
    memory = await side.told("as it is", tags=("a", "b"))
    changed = await side.change(memory, tags=["b", "a"], pinned=False, **worded("as it is"))
    assert (changed.version, changed.events) == (1, [])
    pinned = await side.change(memory, event="pinned", pinned=True)
    assert [event.subject for event in pinned.events] == ["memory.one.pinned"]
    assert pinned.version == 2


async def test_every_version_has_its_events_and_a_refusal_none(side: MemoryAccess) -> None:
    old = await side.told("port 80", key="port")
    await side.tell(new("port 80", key="port"), new("port 81", key="port"))
    last = await side.told("port 81", key="port", supersede_reason="moved")
    await side.change(last, **worded("port 82"))
    with pytest.raises(PreconditionFailed):
        await side.change(last, expected=1, pinned=True)
    await side.forget(last)
    assert side.events() == sorted(
        [
            ("memory.one.remembered", str(old), 1),
            ("memory.one.edited", str(old), 2),
            ("memory.one.superseded", str(old), 3),
            ("memory.one.remembered", str(last), 1),
            ("memory.one.remembered", str(last), 2),
            ("memory.one.edited", str(last), 2),
            ("memory.one.forgotten", str(last), 3),
        ]
    )


async def test_a_change_based_on_another_version_is_refused(side: MemoryAccess) -> None:
    memory = await side.told("moving")
    await side.change(memory, pinned=True)
    with pytest.raises(PreconditionFailed) as caught:
        await side.change(memory, expected=1, **worded("moved"))
    assert caught.value.version == 2
    assert (await side.get(memory)).content == "moving"


async def test_only_writers_of_its_scope_can_change_a_memory(side: MemoryAccess) -> None:
    memory, node = await side.told("at home", scope=HOME), await side.told("f", kind=Kind.FILE)
    for who in (replace(side.me, role=KeyRole.READER), replace(side.me, writes=(SHOP,))):
        with pytest.raises(Forbidden, match=f"this key may not write scope {HOME}"):
            await side.change(memory, who=who, pinned=True)
    with pytest.raises(NotFound):
        await side.change(memory, who=side.of_shop, pinned=True)
    with pytest.raises(InvalidInput, match="file and entity nodes are made"):
        await side.change(node, pinned=True)


async def test_a_forgotten_memory_is_not_found(side: MemoryAccess) -> None:
    other = await side.told("beside")
    memory = await side.told("a slip", edges=(edge(other),))
    changed = await side.forget(memory)
    assert [event.subject for event in changed.events] == ["memory.one.forgotten"]
    for again in (side.get, side.forget):
        with pytest.raises(NotFound):
            await again(memory)
    with pytest.raises(NotFound):
        await side.edits.version(side.me, memory, 1)
    assert (await side.near(other), await side.history(memory)) == ([], [])
    assert await side.listed() == [other]
    assert await side.listed(ListFilter(status=["archived"])) == []
    assert await side.told("a slip") != memory


async def test_a_forgotten_memory_has_no_neighbours(side: MemoryAccess) -> None:
    cause = await side.told("cause")
    middle = await side.told("middle", edges=(edge(cause, EdgeKind.CAUSED_BY),))
    effect = await side.told("effect", edges=(edge(middle, EdgeKind.CAUSED_BY),))
    await side.forget(middle)
    (turned,) = await side.tell(new("cause", edges=(edge(effect, EdgeKind.CAUSED_BY),)))
    assert written(turned).id == cause


async def test_a_memory_can_be_rolled_back(side: MemoryAccess) -> None:
    memory = await side.told("good", key="k", tags=("a",), metadata={"n": 1}, valid_to=JULY)
    await side.change(memory, tags=[], metadata={}, kind="bug", valid_to=None, **worded("bad"))
    assert (await side.roll_back(memory, 1)).version == 3
    found = await side.get(memory)
    assert (found.content, found.key, found.tags) == ("good", "k", ("a",))
    assert (found.metadata, found.kind, found.valid_to) == ({"n": 1}, Kind.CONTEXT, JULY)
    with pytest.raises(NotFound, match=f"no version 7 of memory {memory}"):
        await side.edits.version(side.me, memory, 7)


async def test_a_rollback_cannot_duplicate_another_memory(side: MemoryAccess) -> None:
    memory = await side.told("first")
    await side.change(memory, **worded("second"))
    twin = await side.told("first")
    with pytest.raises(Conflict) as caught:
        await side.roll_back(memory, 1)
    assert caught.value.current == {"id": str(twin)}
    assert str(caught.value) == f"the active memory {twin} has this content or key already"
    assert [v.content for v in await side.history(memory)] == ["second", "first"]
    await side.change(memory, status="archived")
    assert (await side.roll_back(memory, 1)).version == 4
    assert await side.listed(ALL) == [twin, memory]
