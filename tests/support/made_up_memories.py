"""Memories of all sorts in a tenant, and changes of all sorts, by a seed."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import EdgeKind, Kind
from reverie.domain.core.memory import NewEdge
from reverie.store.memories.edits import EditStore, MemoryChange, build_content_fields
from reverie.store.memories.enrichment import DerivedData, EmbeddedChunk, EnrichmentStore
from reverie.store.platform.administration import AdministrationStore
from reverie.store.search.ranking_signals import UsageRecord, UsageStore
from reverie.store.sessions.sessions import SessionStore
from tests.support.recall_engines import embed, weigh_words
from tests.support.store_setup import Store, admin_rows, new, write

NOUNS = (
    *("pool", "worker", "cache", "index", "vector", "retry", "queue", "lock", "batch", "ledger"),
    *("token", "shard", "replica", "router", "parser", "schema", "bucket", "cursor", "daemon"),
    *("getUserById", "pool_size", "src/auth.ts", "连接池"),
)
VERBS = ("reads", "drops", "fills", "blocks", "holds", "splits", "merges", "renames", "restarts")
ADVERBS = ("nightly", "twice", "slowly", "never", "first", "again", "before", "apart")
SCOPES = ("global", "project/a", "project/a/feature/x", "project/b", "agent/bob")
KINDS = (
    *(Kind.DECISION, Kind.BUG, Kind.CONTEXT, Kind.LESSON, Kind.PREFERENCE, Kind.IDENTITY),
    *(Kind.REFERENCE, Kind.HISTORICAL, Kind.SPEC, Kind.CONVENTION),
)
STORED_KINDS = tuple(kind for kind in EdgeKind if kind not in {EdgeKind.FOLLOWS, EdgeKind.TOUCHES})
TAGS = ("deploy", "outage", "review")


@dataclass
class MadeUpTenant:
    """A tenant whose memories are made up by `chance`."""

    store: Store
    chance: random.Random
    ids: list[UUID] = field(default_factory=list)
    sessions: list[UUID] = field(default_factory=list)
    keys: int = 0

    def make_text(self, most: int = 4) -> str:
        """Sentences of few words, with a number that tells it from others."""
        chance = self.chance
        sentences = [
            f"{chance.choice(NOUNS)} {chance.choice(VERBS)} {chance.choice(NOUNS)}"
            f" {chance.choice(ADVERBS)}"
            for _ in range(chance.randint(1, most))
        ]
        return f"{'. '.join(sentences)} case {chance.randrange(1_000_000)}"

    def make_question(self) -> str:
        """Some words, a name, or a phrase."""
        chance = self.chance
        words = [*chance.sample(NOUNS, chance.randint(1, 3)), chance.choice(VERBS)]
        if chance.random() < 0.15:
            return f'why "{chance.choice(NOUNS)} {chance.choice(VERBS)}"'
        return " ".join(words[: chance.randint(1, 4)])

    async def fill(self, count: int) -> None:
        """Writes memories with all that belongs to them."""
        for scope in SCOPES[:4]:
            sessions = SessionStore(self.store.db)
            session, _ = await sessions.start(self.store.me, new_id(), scope, {"agent": "ann"})
            self.sessions.append(session)
        for _ in range(count):
            await self.remember()
        for _ in range(count):
            await self.put_edge()
        for change in (self.put_ranks, self.use, self.mark, self.contradict, self.supersede):
            await change()

    async def remember(self) -> None:
        """A new memory; vectors arrive at once for most of them."""
        chance = self.chance
        edges = (
            (NewEdge(self.pick(), EdgeKind.RELATES_TO, chance.random()),)
            if self.ids and chance.random() < 0.3
            else ()
        )
        [memory] = await write(
            self.store,
            new(
                self.make_text(),
                scope=chance.choice(SCOPES),
                kind=chance.choice(KINDS),
                tags=tuple(chance.sample(TAGS, chance.randint(0, 2))),
                session=chance.choice(self.sessions) if chance.random() < 0.5 else None,
                confidence=round(chance.uniform(0.2, 1), 2),
                pinned=chance.random() < 0.1,
                edges=edges,
            ),
        )
        self.ids.append(memory)
        days = chance.randrange(200)
        self.run(
            "update memory set created = created - %s * interval '1 day' where id = %s",
            *(days, memory),
        )
        if chance.random() < 0.85:
            await self.derive(memory)

    async def remember_copy(self) -> None:
        """The text of another memory in another scope."""
        [[content, scope]] = admin_rows(
            self.store.admin_url, "select content, scope from memory where id = %s", self.pick()
        )
        other = self.chance.choice([name for name in SCOPES if name != scope])
        if content:
            self.ids += await write(self.store, new(content, scope=other))

    async def derive(self, memory: UUID | None = None) -> None:
        """Vectors of a memory: of the first time, or others for the same text."""
        slow = EnrichmentStore(self.store.db)
        raw = await slow.load(self.store.me.tenant, memory or self.pick())
        if raw is None:
            return
        parts = [part for part in raw.content.split(". ") if part]
        chunks = [
            EmbeddedChunk(
                number,
                number + 1,
                bytes([number]) * 32,
                embed(f"{part} {self.chance.random() if raw.enriched_version else ''}"),
                weigh_words(part) if self.chance.random() < 0.8 else None,
            )
            for number, part in enumerate(parts)
        ]
        if raw.enriched_version >= raw.version:
            await slow.replace_chunks(self.store.me.tenant, raw, chunks)
        else:
            one = (self.store.me.tenant, "one")
            await slow.write_derived(one, [DerivedData(raw, chunks, {})], 0)

    async def put_edge(self) -> None:
        """An edge of any kind, also between scopes."""
        source, target = self.chance.sample(self.ids, 2)
        kind, weight = self.chance.choice(STORED_KINDS), round(self.chance.uniform(0.1, 1), 3)
        self.insert_edge(source, target, kind, weight)

    async def close_edge(self) -> None:
        """An edge no longer holds."""
        self.run(
            "update edge set known_to = clock_timestamp() where (tenant, id) in (select tenant, id"
            " from edge where tenant = %s and known_to is null order by id limit 1)",
            self.store.me.tenant,
        )

    async def contradict(self) -> None:
        """A later memory says something else than another of its scope."""
        first, second = self.pick(), self.pick()
        if first == second:
            return
        self.run("update memory set scope = 'project/a' where id = any(%s)", [first, second])
        self.run("update memory set confirmed = clock_timestamp() where id = %s", second)
        self.insert_edge(second, first, EdgeKind.CONTRADICTS, 1.0)

    async def supersede(self) -> None:
        """A memory, and another that replaces it; a third replaces some of these."""
        self.keys += 1
        for number in range(self.chance.randint(2, 3)):
            made = new(
                self.make_text(),
                key=f"key-{self.keys}",
                scope="project/b",
                supersede_reason="newer" if number else None,
            )
            self.ids += await write(self.store, made)
            if self.chance.random() < 0.7:
                await self.derive(self.ids[-1])

    async def edit(self) -> None:
        """Another text, kind or confidence."""
        chance = self.chance
        fields = chance.choice(
            (
                build_content_fields(self.make_text(), None, [], {}),
                {"kind": chance.choice(KINDS).value},
                {"confidence": round(chance.random(), 2)},
                {"pinned": chance.random() < 0.5},
                {"tags": [chance.choice(TAGS)]},
            )
        )
        await self.change(dict(fields), "edited")

    async def move(self) -> None:
        """Another scope."""
        scope = self.chance.choice(SCOPES)
        self.run("update memory set scope = %s where id = %s", scope, self.pick())

    async def archive(self) -> None:
        """No longer found, unless archived ones are asked for."""
        await self.change({"status": "archived"}, "archived")

    async def forget(self) -> None:
        """Its text and all that was derived from it is deleted."""
        await self.change({"status": "deleted"}, "forgotten")

    async def change(self, fields: dict[str, object], event: str) -> None:
        """A versioned change of a memory that was not forgotten."""
        memory = self.pick()
        [[status]] = admin_rows(
            self.store.admin_url, "select status from memory where id = %s", memory
        )
        if status == "deleted":
            return
        change = MemoryChange(fields, "made up", event)
        await EditStore(self.store.db).change(self.store.me, memory, change, {})

    async def mark(self) -> None:
        """Commits put memories in doubt."""
        for memory in {self.pick() for _ in range(3)}:
            self.run(
                "insert into stale_mark (tenant, memory, commit, path, origin, grade, score,"
                " change, subject, committed_at, event) values"
                " (%s, %s, %s, 'a.py', %s, 'suspect', %s, 'modified', 'x', now(), %s)",
                *(self.store.me.tenant, memory, new_id().hex, memory),
                *(round(self.chance.random(), 2), new_id()),
            )

    async def clear_marks(self) -> None:
        """Somebody says that they hold all the same."""
        self.run(
            "update stale_mark set cleared = now() where (tenant, memory, commit) in (select"
            " tenant, memory, commit from stale_mark where cleared is null limit 2)",
        )

    async def put_ranks(self) -> None:
        """All ranks are computed anew."""
        self.run("delete from memory_rank")
        for memory in self.chance.sample(self.ids, len(self.ids) // 2):
            self.run(
                "insert into memory_rank (tenant, memory, scope, rank)"
                " select tenant, id, scope, %s from memory where tenant = %s and id = %s",
                *(self.chance.random(), self.store.me.tenant, memory),
            )

    async def use(self) -> None:
        """Agents use memories, which counts from the next hour on."""
        used = UsageRecord(f"session-{self.chance.random()}", self.chance.sample(self.ids, 5))
        await UsageStore(self.store.db).record(self.store.me.tenant, ["*"], [used])

    async def delete_scope(self) -> None:
        """All memories of a scope are deleted, and whatever belongs to them."""
        store = AdministrationStore(self.store.db)
        async for _ in store.delete_scope(self.store.me, ["agent/bob"]):
            pass
        there = {row[0] for row in admin_rows(self.store.admin_url, "select id from memory")}
        self.ids = [memory for memory in self.ids if memory in there]

    @property
    def changes(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """Changes of every sort."""
        return (
            *(self.remember, self.remember_copy, self.derive, self.put_edge, self.close_edge),
            *(self.contradict, self.supersede, self.edit, self.move, self.archive, self.forget),
            *(self.mark, self.clear_marks, self.put_ranks, self.use, self.delete_scope),
        )

    def pick(self) -> UUID:
        """One of the memories."""
        return self.chance.choice(self.ids)

    def run(self, statement: str, *args: object) -> None:
        """Runs a statement past all services."""
        admin_rows(self.store.admin_url, statement, *args)

    def insert_edge(self, source: UUID, target: UUID, kind: EdgeKind, weight: float) -> None:
        """Stores an edge, or nothing if it is there."""
        self.run(
            "insert into edge (tenant, id, src, kind, dst, weight) values (%s, %s, %s, %s, %s, %s)"
            " on conflict do nothing",
            *(self.store.me.tenant, new_id(), source, kind.value, target, weight),
        )
