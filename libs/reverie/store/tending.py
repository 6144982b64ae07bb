"""What tending memories reads and writes: the faded, the archive, conventions to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal
from uuid import UUID

from reverie.contracts.events import Outgoing, memory_subject, outgoing
from reverie.domain.access import Principal
from reverie.domain.dreaming import Record
from reverie.domain.errors import Conflict, Forbidden, NotFound
from reverie.domain.ids import new_id
from reverie.domain.memory import Memory, NewMemory, content_hash
from reverie.domain.promotion import AGENT_FILES, PROMOTED, Evidence
from reverie.domain.topics import (
    LEAST_MEMORIES,
    LEAST_SESSIONS,
    MOST_MEMORIES,
    Centre,
    Topic,
)
from reverie.store import rows
from reverie.store.database import Database
from reverie.store.effects import called_once
from reverie.store.vault import MANY_VERSIONS

FIRST = UUID(int=0)


@dataclass(frozen=True)
class Garden:
    """What of a tenant is tended: all scopes that the patterns cover. `home`: the scope under which
    its record is kept."""

    tenant: int
    tenant_name: str
    scopes: tuple[str, ...] = ("*",)
    home: str = "*"

    @property
    def whole(self) -> bool:
        """Whether it is all of the tenant."""
        return "*" in self.scopes


@dataclass(frozen=True)
class Turn:
    """A worker's hold on a tenant that is to be tended. `tries`: how often it was begun since it
    was last ended, this one included."""

    garden: Garden
    epoch: int
    tries: int


@dataclass(frozen=True)
class TendRun:
    """One run of tending as it is recorded. `epoch`: of the lease that it is under, else 0."""

    garden: Garden
    worker: str
    epoch: int = 0
    id: UUID = field(default_factory=new_id)
    started: datetime = field(default_factory=partial(datetime.now, UTC))


@dataclass(frozen=True)
class Ground:
    """A memory as reflecting reads it."""

    id: UUID
    kind: str
    content: str


@dataclass(frozen=True)
class BusyKey:
    """The active memory under a key, and how often the key was written."""

    id: UUID
    key: str
    versions: int


@dataclass(frozen=True)
class ChangedTopic:
    """A topic that arose, has other members, or dissolved (then it has none)."""

    id: UUID
    name: str
    members: int


class Tending:
    """The archive and the promotion of memories."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def due(self, every_seconds: float, lease_seconds: float) -> Turn | None:
        """A tenant that nobody tended for so long; others are not given it while it is kept."""
        found = await self._db.rows("tend_claim", every_seconds, lease_seconds)
        if not found:
            return None
        [row] = found
        return Turn(Garden(row["tenant"], row["tenant_name"]), row["epoch"], row["tries"])

    async def keep(self, turn: Turn, lease_seconds: float) -> bool:
        """Keeps the turn alive; False where another has it."""
        return bool(await self._db.call("tend_keep", turn.garden.tenant, turn.epoch, lease_seconds))

    async def end(self, turn: Turn, again_seconds: float | None) -> bool:
        """Ends a turn: for this time, or until another goes on after so long. False where another
        has it."""
        return bool(await self._db.call("tend_end", turn.garden.tenant, turn.epoch, again_seconds))

    async def waits(self, every_seconds: float) -> bool:
        """Whether some tenant is due and nobody is at it."""
        return bool(await self._db.call("tend_waits", every_seconds))

    async def fading(
        self, garden: Garden, above: UUID, kinds: Sequence[str], days: float, limit: int
    ) -> list[Memory]:
        """Active memories that may fade, older than `days`, by id above `above`."""
        async with self._db.tenant(garden.tenant) as tenant:
            found = await tenant.rows(
                "fading", list(garden.scopes), above, list(kinds), days, limit
            )
        return [rows.memory(row) for row in found]

    async def archive(
        self, garden: Garden, memories: Sequence[Memory], seen: datetime, why: str
    ) -> list[UUID]:
        """Archives what did not change since it was read at `seen`; answers their ids."""
        found = await self._db.rows(
            "archive_memories",
            garden.tenant,
            garden.tenant_name,
            [one.id for one in memories],
            [one.version for one in memories],
            seen,
            why,
            {},
        )
        return [row[0] for row in found]

    async def promotable(
        self, garden: Garden, above: UUID, sessions: int, limit: int
    ) -> list[tuple[Memory, Evidence]]:
        """Memories with evidence for a convention that became none yet, by id above `above`."""
        async with self._db.tenant(garden.tenant) as tenant:
            found = await tenant.rows(
                "promotable",
                list(garden.scopes),
                [kind.value for kind in PROMOTED],
                sessions,
                list(AGENT_FILES),
                above,
                limit,
            )
        return [(rows.memory(row), _evidence(row)) for row in found]

    async def write(self, garden: Garden, new: NewMemory) -> bool:
        """Writes a memory with its edges; False where something is in the way of it."""
        items = [rows.item(new, [new.scope])]
        whose = garden.tenant, garden.tenant_name
        found = await self._db.rows("remember", *whose, items, {}, None, None, "")
        return "problem" not in found[0][0]

    async def anchors(self, garden: Garden, above: UUID, limit: int) -> list[UUID]:
        """Files and entities, put away or not, by id above `above`."""
        async with self._db.tenant(garden.tenant) as tenant:
            found = await tenant.rows("tend_anchors", list(garden.scopes), above, limit)
        return [row["id"] for row in found]

    async def memories(self, garden: Garden, above: UUID, limit: int) -> list[UUID]:
        """Active memories by id above `above`."""
        async with self._db.tenant(garden.tenant) as tenant:
            found = await tenant.rows("tend_memories", list(garden.scopes), above, limit)
        return [row["id"] for row in found]

    async def collect(
        self, tenant: int, nodes: Sequence[UUID], days: float
    ) -> list[tuple[UUID, str]]:
        """Archives those that nothing touches, unless they are younger than `days`; brings back
        what is touched again. Answers which, and what became of them."""
        found = await self._db.rows("collect_anchors", tenant, list(nodes), days)
        return [(row["node"], row["outcome"]) for row in found]

    async def idle(
        self, garden: Garden, above: UUID, days: float, limit: int
    ) -> list[tuple[UUID, bool]]:
        """Files and entities by id above `above`, and whether nothing touches them since `days`."""
        async with self._db.tenant(garden.tenant) as tenant:
            found = await tenant.rows("tend_idle", list(garden.scopes), above, days, limit)
        return [(row["id"], row["idle"]) for row in found]

    async def places(self, garden: Garden) -> dict[str, UUID]:
        """Above which memory each pass goes on; a part of a tenant begins anew."""
        if not garden.whole:
            return {}
        async with self._db.tenant(garden.tenant) as tenant:
            return {row["pass"]: row["above"] for row in await tenant.rows("tend_passes")}

    async def went_on(self, garden: Garden, name: str, above: UUID, looked: int) -> None:
        """Notes how far a pass came; `FIRST` where it came to the end."""
        if garden.whole:
            async with self._db.tenant(garden.tenant) as tenant:
                await tenant.rows("tend_pass_put", name, above, looked, above == FIRST)

    async def topic_scopes(self, garden: Garden, above: UUID, limit: int) -> list[tuple[str, UUID]]:
        """Projects, each with the id of its first file or entity, by that id above `above`."""
        async with self._db.tenant(garden.tenant) as tenant:
            found = await tenant.rows("topic_scopes", list(garden.scopes), above, limit)
        return [(row["scope"], row["first"]) for row in found]

    async def centres(self, tenant: int, scope: str) -> list[Centre]:
        """What enough memories of enough sessions of a scope touch."""
        async with self._db.tenant(tenant) as t:
            found = await t.rows(
                "topic_centres", scope, LEAST_MEMORIES, LEAST_SESSIONS, MOST_MEMORIES
            )
        return [Centre(row["name"], frozenset(row["memories"])) for row in found]

    async def put_topics(
        self, tenant: int, scope: str, topics: Sequence[Topic]
    ) -> list[ChangedTopic]:
        """Makes these the topics of a scope; answers those that changed."""
        items = [_topic(one) for one in topics]
        found = await self._db.rows("topics_put", tenant, scope, items)
        return [ChangedTopic(row["node"], row["name"], row["members"]) for row in found]

    async def stateful(self, garden: Garden, above: UUID, limit: int) -> list[Ground]:
        """Active memories that look like state, by id above `above`."""
        async with self._db.tenant(garden.tenant) as tenant:
            found = await tenant.rows("tend_stateful", list(garden.scopes), above, limit)
        return [Ground(**row) for row in found]

    async def busy(self, garden: Garden, limit: int) -> list[BusyKey]:
        """Keys that were written very often, the busiest first."""
        async with self._db.tenant(garden.tenant) as tenant:
            found = await tenant.rows("tend_busy", list(garden.scopes), MANY_VERSIONS, limit)
        return [BusyKey(**row) for row in found]

    async def reflectable(self, garden: Garden, fresh: int) -> str | None:
        """The scope with the most that is new since it was reflected on, `fresh` at least."""
        async with self._db.tenant(garden.tenant) as tenant:
            found: str | None = await tenant.value("reflectable", list(garden.scopes), fresh)
        return found

    async def ground(self, tenant: int, scope: str, limit: int) -> list[Ground]:
        """The newest active memories of a scope that were not derived."""
        async with self._db.tenant(tenant) as t:
            return [Ground(**row) for row in await t.rows("reflect_ground", scope, limit)]

    async def reflected(self, tenant: int, scope: str, newest: UUID) -> None:
        """Notes that a scope was reflected on, up to its newest memory."""
        async with self._db.tenant(tenant) as t:
            await t.rows("tend_pass_put", f"reflect {scope}", newest, 0, True)

    async def record(
        self,
        run: TendRun,
        status: Literal["running", "done", "failed"],
        error: str | None,
        record: Record,
        counts: Mapping[str, int],
    ) -> None:
        """Adds to the record of a run what was done since; `counts`: how often, by outcome, since
        it began."""
        await self._db.call(
            "tend_record",
            run.garden.tenant,
            run.id,
            run.epoch,
            run.garden.home,
            run.worker,
            run.started,
            status,
            error,
            record.fields(),
            dict(counts),
        )

    async def forget_uses(self, tenant: int, days: int) -> int:
        """Forgets which sessions used what, so many days ago or more."""
        async with self._db.tenant(tenant) as inside:
            return int(await inside.value("forget_uses", days))

    async def restore(self, who: Principal, memory: UUID) -> tuple[int, Outgoing]:
        """Takes a memory out of the archive; answers its version and the event to publish.

        Raises `NotFound`, `Forbidden`, or `Conflict` where it is not archived or another active
        memory holds its key or content.
        """
        found = await called_once(
            self._db,
            "restore_memory",
            who.tenant,
            f"restore {memory}",
            who.tenant_name,
            memory,
            list(who.reads),
            list(who.writable),
            who.actor,
            new_id(),
            {},
        )
        _check(memory, found)
        body = {"id": str(memory), "version": found["version"]}
        subject = memory_subject(who.tenant_name, "restored")
        return found["version"], outgoing(who.tenant, subject, body, {}, UUID(found["event"]))


def _topic(one: Topic) -> dict[str, Any]:
    return {
        "id": str(new_id()),
        "key": one.key,
        "name": one.head.name,
        "hash": content_hash(one.head.name),
        "members": [str(member) for member in sorted(one.members)],
    }


def _check(memory: UUID, found: dict[str, Any]) -> None:
    match found.get("problem"):
        case "not_found":
            raise NotFound("memory", str(memory))
        case "forbidden":
            raise Forbidden("write", found["scope"])
        case "status":
            raise Conflict(f"the memory is {found['status']}, not archived")
        case "twin":
            raise Conflict(
                f"the active memory {found['id']} holds its key or content", {"id": found["id"]}
            )


def _evidence(row: Any) -> Evidence:
    file = row["agent_file"] or (row["source"] == "agent_file" or "agent-file" in row["tags"])
    named = file if isinstance(file, str) else ("of the repository" if file else None)
    return Evidence(row["said"], row["said_in"], named)
