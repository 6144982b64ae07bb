"""Anchors and git changes in the store, and the marks that the staleness service makes."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest

from reverie.bus.interface import MessageBus
from reverie.contracts.memories.git import GitChange
from reverie.domain.core.errors import Unavailable
from reverie.domain.redaction.redactor import RedactedText, Redactor
from reverie.domain.staleness.grading import StaleGrade
from reverie.store.memories.enrichment import DerivedData, EnrichmentStore
from reverie.store.staleness.reviews import ReviewStore
from reverie.testing.servers import DatabaseUrls
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.marks.apply_change import apply_change, recompute_marks
from tests.staleness.staleness_dependencies import build_parts
from tests.support.stack import eventually
from tests.support.store_setup import Store, admin_rows, derived, files_of, new, open_store, write
from tests.support.tables import blocked, holding

LINES = [[10, 20]]


@dataclass(frozen=True)
class Place:
    """The store, and staleness over it with a bus that is away: events wait in the outbox."""

    store: Store
    parts: StalenessDependencies

    @property
    def tenant(self) -> int:
        return self.store.me.tenant


@pytest.fixture
async def place(database: DatabaseUrls) -> AsyncIterator[Place]:
    async with open_store(database) as store:
        bus = AsyncMock(spec=MessageBus)
        bus.publish.side_effect = Unavailable("NATS", "try again shortly")
        parts = build_parts(store, bus)
        yield Place(store, parts)


async def _enrich(
    place: Place, memory: UUID, files: Mapping[str, Any], project: str = "p"
) -> list[str]:
    """Enriches a memory that touches these files, each with what the edge says of it."""
    slow = EnrichmentStore(place.store.db)
    raw = await slow.load(place.tenant, memory)
    assert raw is not None
    within = replace(raw, scope=f"project/{project}")
    nodes = await files_of(slow, place.tenant, within, *files)
    touches = {node: files[path] for path, node in nodes.items()}
    return await derived(slow, place.tenant, DerivedData(raw, [], touches), relatives=5)


async def _post(
    place: Place,
    after: str,
    *files: Mapping[str, Any],
    at: str = "2100-01-01T00:00:00Z",
    **more: Any,
) -> UUID:
    change = GitChange.model_validate(
        {
            "project": "p",
            "branch": "main",
            "after": after * 40,
            "commits": [{"sha": after * 40, "committed_at": at}],
            "files": list(files),
            **more,
        }
    )
    stored, _, _ = await place.parts.changes.add(place.store.me, change, {})
    return stored


async def _apply(place: Place, change: UUID) -> None:
    await apply_change(place.parts, place.tenant, "one", change)


def _marks(place: Place) -> list[tuple[Any, ...]]:
    sql = "select memory, path, grade from stale_mark order by 2"
    return admin_rows(place.store.admin_url, sql)


def _take(place: Place, kind: str) -> list[dict[str, Any]]:
    """Takes the bodies of waiting events from the outbox."""
    sql = "delete from outbox where subject like %s returning payload"
    return [row[0] for row in admin_rows(place.store.admin_url, sql, f"%.{kind}")]


async def test_a_memory_whose_key_resembles_a_file_is_no_file(place: Place) -> None:
    guide = new("how to read me", key="README.md", scope="project/p")
    mine, other = await write(place.store, guide, new("see README.md", scope="project/p"))
    await _enrich(place, mine, {"README.md": {}})
    await _enrich(place, other, {"README.md": {}})
    renamed = {"path": "docs/README.md", "old_path": "README.md", "status": "renamed"}
    await _apply(place, await _post(place, "a", renamed))
    kept = await place.store.memories.get(place.store.me, mine)
    assert (kept.key, kept.content) == ("README.md", "how to read me")
    _, near = await place.store.memories.get_with_neighbours(place.store.me, other)
    assert [(n.kind, n.label) for n in near if n.type == "touches"] == [("file", "docs/README.md")]


@pytest.mark.parametrize(("key", "path"), [("plan.md", "plan.md"), ("file:plan.md", "old.md")])
async def test_a_file_keeps_its_name_if_a_memory_has_the_key_of_the_new_one(
    place: Place, key: str, path: str
) -> None:
    plan = new("the plan", key=key, scope="project/p")
    mine, other = await write(place.store, plan, new("see old.md", scope="project/p"))
    await _enrich(place, other, {"old.md": {}})
    renamed = {"path": "plan.md", "old_path": "old.md", "status": "renamed"}
    await _apply(place, await _post(place, "a", renamed))
    memory = await place.store.memories.get(place.store.me, mine)
    assert (memory.content, memory.kind.value) == ("the plan", "context")
    assert admin_rows(place.store.admin_url, "select path from anchor") == [(path,)]


async def test_a_file_of_a_memory_stays_linked_until_the_memory_changes(place: Place) -> None:
    store = place.store
    [memory] = await write(store, new("the loop reads all", key="loop", scope="project/p"))

    async def touched() -> list[str | None]:
        _, near = await store.memories.get_with_neighbours(store.me, memory)
        return [one.label for one in near if one.type == "touches"]

    versions = await place.parts.stale_marks.load_writable_versions(store.me, "p", [memory])
    async with place.parts.stale_marks.lock_project((place.tenant, "one"), "p") as held:
        await held.anchor_memory(
            memory, "a.py", {"named": "a.py", "memory_version": versions[memory]}
        )
    await _enrich(place, memory, {"b.py": {"named": "b.py"}})
    assert sorted(map(str, await touched())) == ["a.py", "b.py"]
    sql = "update memory set version = version + 1 where id = %s"
    admin_rows(store.admin_url, sql, memory)
    await _enrich(place, memory, {"b.py": {"named": "b.py"}})
    assert await touched() == ["b.py"]


async def test_line_ranges_of_a_memory_survive_a_rename(place: Place) -> None:
    [memory] = await write(
        place.store, new("the loop in a.py", scope="project/p", git={"lines": {"a.py": LINES}})
    )
    await _enrich(place, memory, {"a.py": {"lines": LINES}})
    renamed = {"path": "b.py", "old_path": "a.py", "status": "renamed"}
    await _apply(place, await _post(place, "a", renamed))
    within = {"path": "b.py", "status": "modified", "hunks": [(12, 1, 12, 1)]}
    await _apply(place, await _post(place, "b", within))
    assert _marks(place) == [(memory, "b.py", "stale")]


async def test_an_edge_with_invalid_line_ranges_has_none(place: Place) -> None:
    [memory] = await write(place.store, new("see a.py", scope="project/p"))
    await _enrich(place, memory, {"a.py": {"lines": "all of them"}})
    within = {"path": "a.py", "status": "modified", "hunks": [(12, 1, 12, 1)]}
    await _apply(place, await _post(place, "a", within))
    assert _marks(place) == [(memory, "a.py", "suspect")]


async def test_a_change_from_before_the_anchors_marks_the_memory_afterwards(place: Place) -> None:
    [memory] = await write(place.store, new("see a.py", scope="project/p"))
    gone = {"path": "a.py", "status": "deleted", "hunks": [[1, 5, 0, 0]]}
    change = await _post(place, "a", gone)
    await _apply(place, change)
    assert _marks(place) == []
    subjects = await _enrich(place, memory, {"a.py": {}})
    assert subjects == ["memory.one.enriched", "git.one.p.changed"]
    about = {"v": 1, "tenant": place.tenant, "project": "p"}
    told = _take(place, "changed")
    assert told == [about | {"id": str(change)}, about | {"memory": str(memory)}]
    await recompute_marks(place.parts, place.tenant, "one", "p", memory)
    assert _marks(place) == [(memory, "a.py", "gone")]
    [reason] = await ReviewStore(place.store.db).list_reasons(place.tenant, memory, 5)
    assert reason.hunks is not None
    assert [hunk["old_lines"] for hunk in reason.hunks] == [5]


async def test_doubt_that_ends_while_marks_are_worked_out_stays_ended(place: Place) -> None:
    store = place.store
    [memory] = await write(store, new("see a.py", scope="project/p"))
    await _enrich(place, memory, {"a.py": {}})
    change = await _post(place, "a", {"path": "a.py", "status": "modified"})

    class ConfirmingRedactor(Redactor):
        """Stands between the reading of the memories and the writing of their marks."""

        def redact(self, text: str) -> RedactedText:
            sql = "select memory_confirm(%s, 'one', %s, '{*}', '{*}', '{}')"
            admin_rows(store.admin_url, sql, place.tenant, memory)
            return super().redact(text)

    async def load_redactor(tenant: int) -> Redactor:
        return ConfirmingRedactor()

    parts = replace(place.parts, load_redactor=load_redactor)
    await apply_change(parts, place.tenant, "one", change)
    assert _marks(place) == []
    later = await _post(place, "b", {"path": "a.py", "status": "deleted"})
    await _apply(place, later)
    assert _marks(place) == [(memory, "a.py", "gone")]


async def test_a_reapplied_change_publishes_only_new_marks(place: Place) -> None:
    first, second = await write(
        place.store, new("see a.py", scope="project/p"), new("also a.py", scope="project/p")
    )
    await _enrich(place, first, {"a.py": {}})
    change = await _post(place, "a", {"path": "a.py", "status": "deleted"})
    told = []
    for touching in (1, 1, 2, 2):
        if touching == 2 and len(_marks(place)) == 1:
            await _enrich(place, second, {"a.py": {}})
        admin_rows(place.store.admin_url, "update git_event set processed = null")
        await _apply(place, change)
        assert len(_marks(place)) == touching
        told.append([event["id"] for event in _take(place, "staled")])
    assert told == [[str(first)], [], [str(second)], []]


async def test_only_changes_of_the_memorys_files_since_it_was_known_affect_it(place: Place) -> None:
    [memory, calm] = await write(
        place.store,
        new("see a.py", scope="project/p", git={"commit": "b" * 40}),
        new("see z.py", scope="project/p", git={"commit": "c" * 40}),
    )
    days = iter(range(1, 5))

    async def gone(after: str, path: str) -> None:
        at = f"2026-01-0{next(days)}T00:00:00Z"
        file = {"path": path, "status": "modified"}
        await _apply(place, await _post(place, after, file, at=at))

    for after, path in (("a", "a.py"), ("b", "z.py"), ("c", "z.py"), ("d", "src/A.py")):
        await gone(after, path)
    assert await _enrich(place, calm, {"z.py": {}}) == ["memory.one.enriched"]
    assert await _enrich(place, memory, {"A.py": {}, "z.py": {}}) == [
        "memory.one.enriched",
        "git.one.p.changed",
    ]
    await recompute_marks(place.parts, place.tenant, "one", "p", memory)
    assert _marks(place) == [(memory, "z.py", "suspect")]


async def test_a_commit_of_the_same_second_casts_doubt_unless_told_earlier(place: Place) -> None:
    """Git tells whole seconds, so that each commit seems to be older than the memory."""
    gone, sql = {"path": "a.py", "status": "deleted"}, "select min(created)::text from memory"
    await _post(place, "a", gone, at=datetime.now(UTC).replace(microsecond=0).isoformat())
    [memory] = await write(place.store, new("see a.py", scope="project/p"))
    await _enrich(place, memory, {"a.py": {}})
    await recompute_marks(place.parts, place.tenant, "one", "p", memory)
    assert _marks(place) == []
    learned = datetime.fromisoformat(admin_rows(place.store.admin_url, sql)[0][0])
    await _apply(place, await _post(place, "b", gone, at=f"{learned.replace(microsecond=0)}"))
    assert _marks(place) == [(memory, "a.py", "gone")]


async def test_a_change_is_stored_while_no_anchors_are_being_derived(place: Place) -> None:
    """Whichever commits last sees the other: the change, who touches its files; the anchors, that
    there was a change."""
    making = "select pg_advisory_xact_lock_shared(hashtextextended('anchors p', id)) from tenant"
    with holding(place.store.admin_url, making):
        change = _post(place, "a", {"path": "a.py", "status": "deleted"})
        posting = asyncio.ensure_future(change)
        await eventually(lambda: blocked(place.store.admin_url))
        assert not posting.done()
    assert await place.parts.changes.get(place.tenant, await posting)


async def test_a_change_by_file_is_refined_by_one_with_lines(place: Place) -> None:
    [memory] = await write(place.store, new("the loop in a.py", scope="project/p"))
    await _enrich(place, memory, {"a.py": {"lines": LINES}})
    within = {"path": "a.py", "status": "modified", "hunks": [(12, 1, 12, 1)]}
    for detail, file, grade in (
        ("files", {"path": "a.py", "status": "modified"}, "suspect"),
        ("lines", within, "stale"),
        ("files", {"path": "a.py", "status": "deleted"}, "stale"),
    ):
        await _apply(place, await _post(place, "a", file, detail=detail))
        [(_, path, found)] = admin_rows(
            place.store.admin_url,
            "select memory, path, grade from stale_mark where cleared is null",
        )
        assert (path, found) == ("a.py", grade)


async def test_a_change_refined_while_being_applied_is_applied_again(place: Place) -> None:
    [memory] = await write(place.store, new("the loop in b.py", scope="project/p"))
    await _enrich(place, memory, {"b.py": {"lines": LINES}})
    edited = [{"path": path, "status": "modified"} for path in ("a.py", "b.py")]
    change = await _post(place, "a", edited[0], detail="files")
    lock = "select pg_advisory_xact_lock(hashtextextended('staleness p', id)) from tenant"
    with holding(place.store.admin_url, lock):
        applying = asyncio.ensure_future(_apply(place, change))
        await eventually(lambda: blocked(place.store.admin_url))
        assert await _post(place, "a", *edited, detail="lines") == change
    await applying
    await _apply(place, change)
    assert _marks(place) == [(memory, "b.py", "suspect")]


async def test_marks_add_up_under_the_worst_grade(place: Place) -> None:
    chance = random.Random(11)
    memories = await write(place.store, *(new(f"memory {n}", scope="project/p") for n in range(40)))
    expected = {}
    for memory in memories:
        doubts = [
            (
                chance.choice(list(StaleGrade)),
                chance.choice([1.0, 0.9995, round(chance.random(), 3)]),
            )
            for _ in range(chance.randint(1, 5))
        ]
        for n, (grade, score) in enumerate(doubts):
            admin_rows(
                place.store.admin_url,
                "insert into stale_mark (tenant, memory, commit, path, grade, score, change,"
                " subject, committed_at, event)"
                " values (%s, %s, %s, 'a.py', %s, %s, 'modified', '', now(), gen_random_uuid())",
                *(place.tenant, memory, f"{n:040}", grade.value, score),
            )
        # Noisy-or: each mark is an independent reason for doubt.
        score = 1 - math.prod(1 - score for _, score in doubts)
        expected[memory] = (max((grade for grade, _ in doubts), key=list(StaleGrade).index), score)
    assert any(score == 1 for _, score in expected.values())
    found = await place.parts.changes.list_stale(place.store.me, ["*"], None, 100)
    assert {one.memory.id for one in found} == set(memories)
    for one in found:
        grade, score = expected[one.memory.id]
        assert one.memory.stale_grade == grade.value
        assert one.memory.staleness == pytest.approx(score, abs=1e-4)
        assert (one.memory.staleness == 1) == (round(score, 4) == 1)


HISTORY = (
    {"path": "lib/old.py", "status": "modified", "hunks": [[12, 1, 12, 2]]},
    {"path": "lib/new.py", "old_path": "lib/old.py", "status": "renamed"},
    {"path": "lib/new.py", "status": "modified", "hunks": [[3, 2, 2, 0]]},
    {"path": "src/last.py", "old_path": "lib/new.py", "status": "renamed",
     "hunks": [[14, 1, 14, 1]]},
    {"path": "lib/gone.py", "status": "deleted"},
)  # fmt: skip


async def test_changes_have_the_same_result_in_any_order_and_number(place: Place) -> None:
    dice = random.Random(7)
    in_order = list(range(len(HISTORY)))
    first = await _lived_through(place, "p0", in_order)
    for trial in range(1, 6):
        order = in_order * 2
        dice.shuffle(order)
        assert await _lived_through(place, f"p{trial}", order) == first, order
    marks, files = first
    assert [(path, grade) for _, path, grade, *_ in marks] == [
        ("lib/old.py", "stale"),
        ("lib/new.py", "suspect"),
        ("src/last.py", "stale"),
        ("lib/gone.py", "gone"),
    ]
    assert files == [("lib/gone.py",), ("src/last.py",)]


async def _lived_through(
    place: Place, project: str, order: Sequence[int]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The marks of a memory of this project alone after these changes, and the files it touches."""
    known_since = datetime(2020, 1, 1, tzinfo=UTC)
    told = new(f"old, gone {project}", scope=f"project/{project}", valid_from=known_since)
    [memory] = await write(place.store, told)
    files = {"lib/old.py": {"lines": LINES}, "lib/gone.py": {}}
    named = {path: {"named": path} | known for path, known in files.items()}
    await _enrich(place, memory, named, project)
    for n in order:
        at = f"2021-01-0{n + 1}T00:00:00Z"
        change = await _post(place, "abcde"[n], HISTORY[n], at=at, project=project)
        await _apply(place, change)
    marks = (
        "select commit, path, grade, score, lines from stale_mark"
        " where memory = %s and cleared is null order by 1, 2"
    )
    touched = (
        "select a.path from edge e join anchor a on a.node = e.dst"
        " where e.src = %s and e.known_to is null order by 1"
    )
    url = place.store.admin_url
    return admin_rows(url, marks, memory), admin_rows(url, touched, memory)
