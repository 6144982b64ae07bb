"""Ranks follow the edges, off the path of reads and writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from reverie.domain.pagerank import ranked
from reverie.ingest.parts import Parts

log = structlog.get_logger("reverie.ingest")


async def rank_all(parts: Parts, tenants: Sequence[int]) -> None:
    """Computes the ranks of tenants anew; safe to repeat."""
    for tenant in tenants:
        standing = await parts.ranks.standing(tenant)
        ranks = await asyncio.to_thread(ranked, standing.edges)
        await parts.ranks.put(tenant, ranks, standing.changes)
        log.info("ranked", tenant=tenant, memories=len(ranks.nodes))
