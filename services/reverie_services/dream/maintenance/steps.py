"""The steps of a maintenance run, page by page, and a dry run that only counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

import structlog

from reverie.domain.core.confidence import has_decayed
from reverie.domain.core.errors import ReverieError
from reverie.domain.core.kinds import (
    ANCHOR_KINDS,
    KIND_POLICIES,
    WINDOW_DAYS,
    Kind,
    choose_tier,
    explain_tier,
)
from reverie.domain.graph.clustering import cluster_topics
from reverie.domain.graph.convention_promotion import build_convention
from reverie.domain.graph.pagerank import rank_scopes
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.maintenance.items import MaintenanceScope
from reverie.store.maintenance.maintenance import START_ID
from reverie.store.memories.duplicates import deduplicate
from reverie_services.dream.dependencies import MaintenanceDependencies
from reverie_services.dream.maintenance.condensing import condense_long_memories
from reverie_services.dream.maintenance.progress import MaintenancePage, MaintenanceProgress
from reverie_services.dream.maintenance.reflection import propose_vault_entries, reflect_on_scope
from reverie_services.dream.maintenance.review import review_stale_memories

log = structlog.get_logger("reverie.dream")

DECAYING_KINDS = [
    kind.value for kind, how in KIND_POLICIES.items() if how.decays and kind not in ANCHOR_KINDS
]
PAGE_SIZE = 500
SMALL_PAGE_SIZE = 20
USAGE_RETENTION_DAYS = 30
ARCHIVE_MIN_AGE_DAYS = 7.0
PROMOTION_MIN_SESSIONS = 3


MaintenanceStep = Callable[
    [MaintenanceDependencies, MaintenanceProgress, UUID], Awaitable[MaintenancePage]
]


async def promote_conventions(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Makes conventions of what proved itself: what is in the way of some stops no others."""
    scope = progress.scope
    promotable = await deps.maintenance.list_promotable(
        scope, after_id, PROMOTION_MIN_SESSIONS, PAGE_SIZE
    )
    redactor = await deps.load_redactor(scope.tenant)
    new_memories = [
        redactor.redact_memory(build_convention(memory, evidence))
        for memory, evidence in promotable
    ]
    for (memory, evidence), new_memory in zip(promotable, new_memories, strict=True):
        if await deps.maintenance.write_memory(scope, new_memory):
            progress.record_decision("promoted", memory.id, evidence.describe(), memory.kind.value)
    return MaintenancePage.of([memory.id for memory, _ in promotable], PAGE_SIZE)


async def archive_faded(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Archives what faded down to the floor."""
    scope, settings = progress.scope, deps.settings
    reason = f"its confidence fell to {settings.decay.floor:g}"
    now = datetime.now(UTC)
    page = await deps.maintenance.list_fading(
        scope, after_id, DECAYING_KINDS, ARCHIVE_MIN_AGE_DAYS, PAGE_SIZE
    )
    faded = {item.id: item for item in page if has_decayed(item, now, settings.decay)}
    if faded:
        for item in await deps.maintenance.archive(scope, list(faded.values()), now, reason):
            progress.record_decision("archived", item, reason, faded[item].kind.value)
    return MaintenancePage.of([item.id for item in page], PAGE_SIZE)


async def move_by_use(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Warms what is used daily, and cools what no longer is, and what sessions left."""
    page = await deps.maintenance.list_tier_candidates(
        progress.scope, after_id, WINDOW_DAYS, PAGE_SIZE
    )
    moves = [
        (item, tier, explain_tier(tier, item.days_used))
        for item in page
        if (tier := choose_tier(Kind(item.kind), item.scope, item.days_used, item.days_idle))
        != item.tier
    ]
    moved = set(await deps.maintenance.move_tiers(progress.scope, moves) if moves else ())
    for item, _, reason in moves:
        if item.id in moved:
            progress.record_decision("moved", item.id, reason, item.kind)
    return MaintenancePage.of([item.id for item in page], PAGE_SIZE)


async def collect_unused_anchors(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Puts away files and entities that nothing touches any more."""
    nodes = await deps.maintenance.list_anchors(progress.scope, after_id, PAGE_SIZE)
    for node, outcome in await deps.maintenance.archive_unused_anchors(
        progress.scope.tenant, nodes, ARCHIVE_MIN_AGE_DAYS
    ):
        result = "collected" if outcome == "archived" else "restored"
        progress.record_decision(
            result, node, "nothing touches it" if result == "collected" else "it is touched again"
        )
    return MaintenancePage.of(nodes, PAGE_SIZE)


async def merge_duplicates(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Merges near-duplicates and links contradictions that enrichment did not find."""
    scope = progress.scope
    ids = await deps.maintenance.list_memories(scope, after_id, SMALL_PAGE_SIZE)
    for memory_id in ids:
        try:
            outcomes = await deduplicate(
                deps.duplicates, (scope.tenant, scope.tenant_name), memory_id, trace_headers()
            )
        except ReverieError:
            raise
        # Whatever is wrong with one memory, the others and the later steps go on.
        except Exception as error:
            log.warning("comparison_failed", memory=str(memory_id), error=type(error).__name__)
            progress.record_decision("failed", memory_id, type(error).__name__)
            continue
        for outcome in outcomes:
            progress.record_decision(outcome.kind, outcome.outcome.id, outcome.reason)
        events = [outcome.outcome.event for outcome in outcomes]
        await deps.publisher.publish(scope.tenant, events)
    return MaintenancePage.of(ids, SMALL_PAGE_SIZE)


async def update_topics(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Makes a topic of what the memories of a project keep being about, and ends what it was."""
    tenant, examined = progress.scope.tenant, 0
    scopes = await deps.maintenance.list_topic_scopes(progress.scope, after_id, SMALL_PAGE_SIZE)
    for scope, _ in scopes:
        clusters = await asyncio.to_thread(
            cluster_topics, await deps.maintenance.load_topic_centres(tenant, scope)
        )
        examined += sum(len(topic.members) for topic in clusters)
        for topic in await deps.maintenance.put_topics(tenant, scope, clusters):
            progress.record_decision(
                "topics", topic.id, f"{topic.members} memories are about {topic.name}"
            )
    last = scopes[-1][1] if len(scopes) == SMALL_PAGE_SIZE else None
    return MaintenancePage(examined, last)


async def update_ranks(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, _: UUID
) -> MaintenancePage:
    """Recomputes the graph rank of memories whose edges changed."""
    graph = await deps.ranks.load_edges(progress.scope.tenant)
    if graph.changes:
        ranks = await asyncio.to_thread(rank_scopes, graph.scopes)
        await deps.ranks.put(progress.scope.tenant, ranks, graph.changes)
        # The ranks are of the whole tenant: their number is not for a key of some scopes.
        progress.counts["ranked"] = len(ranks.nodes) if progress.scope.is_whole_tenant else 0
    return MaintenancePage(0, None)


async def delete_old_usage(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, _: UUID
) -> MaintenancePage:
    """Forgets which sessions used what, long ago."""
    await deps.maintenance.delete_old_uses(progress.scope.tenant, USAGE_RETENTION_DAYS)
    return MaintenancePage(0, None)


STEPS: dict[str, MaintenanceStep] = {
    "promote": promote_conventions,
    "archive": archive_faded,
    "tiers": move_by_use,
    "collect": collect_unused_anchors,
    "liken": merge_duplicates,
    "cluster": update_topics,
    "centre": update_ranks,
    "usage": delete_old_usage,
    "condense": condense_long_memories,
}

REVIEW_STEPS: dict[str, MaintenanceStep] = {"review": review_stale_memories}
REFLECTION_STEPS: dict[str, MaintenanceStep] = {
    "propose": propose_vault_entries,
    "reflect": reflect_on_scope,
}
"""Both only where they are set."""


async def preview_maintenance(
    deps: MaintenanceDependencies, scope: MaintenanceScope
) -> dict[str, int]:
    """Counts the memories that may be archived or were archived, and the unused anchors."""
    examined, archived = await _count_faded(deps, scope)
    nodes, collected = await _count_idle_anchors(deps, scope)
    return {"examined": examined + nodes, "archived": archived, "collected": collected}


async def _count_faded(deps: MaintenanceDependencies, scope: MaintenanceScope) -> tuple[int, int]:
    settings, now = deps.settings, datetime.now(UTC)
    after_id, examined, faded = START_ID, 0, 0
    while True:
        page = await deps.maintenance.list_fading(
            scope, after_id, DECAYING_KINDS, ARCHIVE_MIN_AGE_DAYS, PAGE_SIZE
        )
        examined += len(page)
        faded += sum(has_decayed(memory, now, settings.decay) for memory in page)
        if len(page) < PAGE_SIZE:
            return examined, faded
        after_id = page[-1].id


async def _count_idle_anchors(
    deps: MaintenanceDependencies, scope: MaintenanceScope
) -> tuple[int, int]:
    after_id, examined, idle = START_ID, 0, 0
    while True:
        page = await deps.maintenance.list_idle_anchors(
            scope, after_id, ARCHIVE_MIN_AGE_DAYS, PAGE_SIZE
        )
        examined += len(page)
        idle += sum(is_idle for _, is_idle in page)
        if len(page) < PAGE_SIZE:
            return examined, idle
        after_id = page[-1][0]
