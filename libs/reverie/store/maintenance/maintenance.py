"""Queries and leases for maintenance: archiving, promotion, topics, reflection, clean-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import Tier
from reverie.domain.core.memory import Memory, NewMemory, hash_content
from reverie.domain.extraction.dream_log import DreamRunLog
from reverie.domain.graph.clustering import (
    MAX_MEMORIES,
    MIN_MEMORIES,
    MIN_SESSIONS,
    TopicCentre,
    TopicCluster,
)
from reverie.domain.graph.convention_promotion import (
    AGENT_RULE_FILES,
    PROMOTABLE_KINDS,
    PromotionEvidence,
)
from reverie.store.db import row_mapping
from reverie.store.db.database import Database
from reverie.store.maintenance.items import (
    ChangedTopic,
    FrequentKey,
    LongMemory,
    MaintenanceLease,
    MaintenanceRun,
    MaintenanceScope,
    ReflectionInput,
    TierCandidate,
)
from reverie.store.vault.vault import FREQUENT_WRITES

START_ID = UUID(int=0)


class MaintenanceStore:
    """The archive and the promotion of memories."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def claim_due(
        self, every_seconds: float, lease_seconds: float
    ) -> MaintenanceLease | None:
        """A tenant that nobody tended for so long; others are not given it while it is kept."""
        found = await self._db.fetch_rows(
            "maintenance_claim", timedelta(seconds=every_seconds), timedelta(seconds=lease_seconds)
        )
        if not found:
            return None
        [row] = found
        return MaintenanceLease(
            MaintenanceScope(row["tenant"], row["tenant_name"]), row["epoch"], row["tries"]
        )

    async def renew(self, lease: MaintenanceLease, lease_seconds: float) -> bool:
        """Renews the lease; False if another worker has it."""
        return bool(
            await self._db.call(
                "maintenance_renew",
                lease.scope.tenant,
                lease.epoch,
                timedelta(seconds=lease_seconds),
            )
        )

    async def release(self, lease: MaintenanceLease, retry_seconds: float | None) -> bool:
        """Ends the lease, or releases it so that another worker continues after a delay.

        Returns False if another worker has it.
        """
        retry_in = None if retry_seconds is None else timedelta(seconds=retry_seconds)
        return bool(
            await self._db.call("maintenance_release", lease.scope.tenant, lease.epoch, retry_in)
        )

    async def is_any_due(self, every_seconds: float) -> bool:
        """Whether some tenant is due and has no worker."""
        return bool(await self._db.call("maintenance_is_due", timedelta(seconds=every_seconds)))

    async def list_fading(
        self, scope: MaintenanceScope, above: UUID, kinds: Sequence[str], days: float, limit: int
    ) -> list[Memory]:
        """Active memories that may fade, older than `days`, by id above `above`."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "fading_memories", list(scope.scopes), above, list(kinds), days, limit
            )
        return [row_mapping.parse_memory(row) for row in found]

    async def archive(
        self, scope: MaintenanceScope, memories: Sequence[Memory], read_at: datetime, reason: str
    ) -> list[UUID]:
        """Archives memories unchanged since `read_at`; returns their ids."""
        found = await self._db.fetch_rows(
            "archive_memories",
            scope.tenant,
            scope.tenant_name,
            [memory.id for memory in memories],
            [memory.version for memory in memories],
            read_at,
            reason,
            {},
        )
        return [row[0] for row in found]

    async def list_promotable(
        self, scope: MaintenanceScope, above: UUID, sessions: int, limit: int
    ) -> list[tuple[Memory, PromotionEvidence]]:
        """Lists memories with enough evidence for a convention that are not promoted, by id above
        `above`."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "promotable_memories",
                list(scope.scopes),
                [kind.value for kind in PROMOTABLE_KINDS],
                sessions,
                list(AGENT_RULE_FILES),
                above,
                limit,
            )
        return [(row_mapping.parse_memory(row), _parse_evidence(row)) for row in found]

    async def write_memory(self, scope: MaintenanceScope, new: NewMemory) -> bool:
        """Writes a memory with its edges; False if it cannot be written."""
        items = [row_mapping.encode_memory(new, [new.scope])]
        tenant_args = scope.tenant, scope.tenant_name
        found = await self._db.fetch_rows("remember", *tenant_args, items, {}, None, None, "")
        return "problem" not in found[0][0]

    async def list_long_memories(
        self, scope: MaintenanceScope, above: UUID, min_chars: int, limit: int
    ) -> list[LongMemory]:
        """Long memories without a summary, by id above `above`."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "maintenance_long_memories", list(scope.scopes), above, min_chars, limit
            )
        return [LongMemory(**row) for row in found]

    async def put_summary(
        self,
        scope: MaintenanceScope,
        memory: LongMemory,
        summary: str,
        headers: Mapping[str, str],
    ) -> bool:
        """Gives a memory a summary; False if it was changed meanwhile."""
        found = await self._db.call(
            "memory_change",
            scope.tenant,
            scope.tenant_name,
            memory.id,
            ["*"],
            ["*"],
            memory.version,
            {"summary": summary},
            "reverie",
            "summarized",
            "edited",
            dict(headers),
            False,
        )
        return "problem" not in found

    async def list_anchors(self, scope: MaintenanceScope, above: UUID, limit: int) -> list[UUID]:
        """Files and entities, put away or not, by id above `above`."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "maintenance_anchors", list(scope.scopes), above, limit
            )
        return [row["id"] for row in found]

    async def list_memories(self, scope: MaintenanceScope, above: UUID, limit: int) -> list[UUID]:
        """Active memories by id above `above`."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "maintenance_memories", list(scope.scopes), above, limit
            )
        return [row["id"] for row in found]

    async def archive_unused_anchors(
        self, tenant: int, nodes: Sequence[UUID], days: float
    ) -> list[tuple[UUID, str]]:
        """Archives anchors without edges, unless younger than `days`; restores those touched again.

        Returns their ids and the results.
        """
        found = await self._db.fetch_rows("archive_idle_anchors", tenant, list(nodes), days)
        return [(row["node"], row["outcome"]) for row in found]

    async def list_idle_anchors(
        self, scope: MaintenanceScope, above: UUID, days: float, limit: int
    ) -> list[tuple[UUID, bool]]:
        """Files and entities by id above `above`, and whether nothing touches them since `days`."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "maintenance_idle_anchors", list(scope.scopes), above, days, limit
            )
        return [(row["id"], row["idle"]) for row in found]

    async def load_positions(self, scope: MaintenanceScope) -> dict[str, UUID]:
        """The memory after which each pass continues; for a part of a tenant, the beginning."""
        if not scope.is_whole_tenant:
            return {}
        async with self._db.tenant_transaction(scope.tenant) as connection:
            return {
                row["pass"]: row["above"]
                for row in await connection.fetch_rows("maintenance_passes")
            }

    async def save_position(
        self, scope: MaintenanceScope, name: str, above: UUID, count: int
    ) -> None:
        """Saves the position of a pass; `START_ID` if it reached the end."""
        if scope.is_whole_tenant:
            async with self._db.tenant_transaction(scope.tenant) as connection:
                await connection.fetch_rows(
                    "maintenance_pass_put", name, above, count, above == START_ID
                )

    async def list_topic_scopes(
        self, scope: MaintenanceScope, above: UUID, limit: int
    ) -> list[tuple[str, UUID]]:
        """Projects, each with the id of its first file or entity, by that id above `above`."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows("topic_scopes", list(scope.scopes), above, limit)
        return [(row["scope"], row["first"]) for row in found]

    async def load_topic_centres(self, tenant: int, scope: str) -> list[TopicCentre]:
        """Loads anchors that enough memories of enough sessions of a scope touch."""
        async with self._db.tenant_transaction(tenant) as connection:
            found = await connection.fetch_rows(
                "topic_centres", scope, MIN_MEMORIES, MIN_SESSIONS, MAX_MEMORIES
            )
        return [TopicCentre(row["name"], frozenset(row["memories"])) for row in found]

    async def put_topics(
        self, tenant: int, scope: str, topics: Sequence[TopicCluster]
    ) -> list[ChangedTopic]:
        """Replaces the topics of a scope; returns the changed ones."""
        items = [_encode_topic(topic) for topic in topics]
        found = await self._db.fetch_rows("topics_put", tenant, scope, items)
        return [ChangedTopic(row["node"], row["name"], row["members"]) for row in found]

    async def list_state_memories(
        self, scope: MaintenanceScope, above: UUID, limit: int
    ) -> list[ReflectionInput]:
        """Active memories that look like state, by id above `above`."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "maintenance_state_memories", list(scope.scopes), above, limit
            )
        return [ReflectionInput(**row) for row in found]

    async def list_frequent_keys(self, scope: MaintenanceScope, limit: int) -> list[FrequentKey]:
        """Keys that were written very often, the busiest first."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "maintenance_frequent_keys", list(scope.scopes), FREQUENT_WRITES, limit
            )
        return [FrequentKey(**row) for row in found]

    async def find_scope_to_reflect(self, scope: MaintenanceScope, min_new: int) -> str | None:
        """The scope with the most that is new since it was reflected on, `min_new` at least."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found: str | None = await connection.fetch_value(
                "reflection_scope", list(scope.scopes), min_new
            )
        return found

    async def load_reflection_input(
        self, tenant: int, scope: str, limit: int
    ) -> list[ReflectionInput]:
        """The newest active memories of a scope that were not derived."""
        async with self._db.tenant_transaction(tenant) as connection:
            return [
                ReflectionInput(**row)
                for row in await connection.fetch_rows("reflection_input", scope, limit)
            ]

    async def mark_reflected(self, tenant: int, scope: str, newest: UUID) -> None:
        """Records that a scope was reflected on, up to its newest memory."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("maintenance_pass_put", f"reflect {scope}", newest, 0, True)

    async def record_run(
        self,
        run: MaintenanceRun,
        status: Literal["running", "done", "failed"],
        error: str | None,
        record: DreamRunLog,
        counts: Mapping[str, int],
    ) -> None:
        """Adds to the record of a run what was done since; `counts`: how often, by outcome, since
        it began."""
        await self._db.call(
            "maintenance_record",
            run.scope.tenant,
            run.id,
            run.epoch,
            run.scope.record_scope,
            run.worker,
            run.started,
            status,
            error,
            record.to_json(),
            dict(counts),
        )

    async def list_tier_candidates(
        self, scope: MaintenanceScope, above: UUID, days: int, limit: int
    ) -> list[TierCandidate]:
        """Active memories that their use may move, by id above `above`; `days` of use count."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows(
                "tier_candidates", list(scope.scopes), above, days, limit
            )
        return [TierCandidate(**row) for row in found]

    async def move_tiers(
        self, scope: MaintenanceScope, moves: Sequence[tuple[TierCandidate, Tier, str]]
    ) -> list[UUID]:
        """Puts memories into tiers, each for a reason, unless they changed; returns their ids."""
        items = [
            {"id": str(item.id), "version": item.version, "tier": tier.value, "reason": reason}
            for item, tier, reason in moves
        ]
        moved = await self._db.fetch_rows("move_tiers", scope.tenant, scope.tenant_name, items, {})
        return [row[0] for row in moved]

    async def delete_old_uses(self, tenant: int, days: int) -> int:
        """Deletes records of memory use by sessions that are older than so many days."""
        async with self._db.tenant_transaction(tenant) as connection:
            return int(await connection.fetch_value("memory_uses_delete_old", days))


def _encode_topic(topic: TopicCluster) -> dict[str, Any]:
    return {
        "id": str(new_id()),
        "key": topic.key,
        "name": topic.centre.name,
        "hash": hash_content(topic.centre.name),
        "members": [str(member) for member in sorted(topic.members)],
    }


def _parse_evidence(row: Any) -> PromotionEvidence:
    file = row["agent_file"] or (row["source"] == "agent_file" or "agent-file" in row["tags"])
    file_name = file if isinstance(file, str) else ("of the repository" if file else None)
    return PromotionEvidence(row["said"], row["said_in"], file_name)
