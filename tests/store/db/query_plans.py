"""Reads generic query plans and checks which tables and indexes they use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
from pgvector import HalfVector, SparseVector

from reverie.store.db.queries import get_query

BIG_TABLES = {"memory", "posting_entry", "edge", "memory_tag", "chunk", "outbox", "memory_change"}
BIG_TABLES |= {"vec_bge_small_en_v1_5"}


def kept_plan(
    connection: psycopg.Connection[Any],
    name: str,
    tenant: int,
    *args: object,
    ran: bool = False,
    own: bool = False,
) -> dict[str, Any]:
    """The plan of a statement as readers keep it; `ran`: with what it took; `own`: the tenant's."""
    told = [
        one.to_text() if isinstance(one, HalfVector | SparseVector) else one
        for one in (tenant, *args)
    ]
    values = psycopg.ClientCursor(connection).mogrify(", ".join(["%s"] * len(told)), told)
    options = "analyze, format json" if ran else "format json"
    mode = "force_custom_plan" if own else "force_generic_plan"
    connection.execute(f"set plan_cache_mode = {mode}".encode())
    connection.execute(f"prepare kept as {get_query(name).sql}".encode())
    found = connection.execute(f"explain ({options}) execute kept ({values})".encode()).fetchone()
    connection.execute("deallocate kept")
    assert found is not None
    plan: dict[str, Any] = found[0][0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All steps of a plan."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def relations(plan: dict[str, Any]) -> list[tuple[str, str, int | None]]:
    """(table, kind of scan, partition) of all scans in a plan."""
    found = []
    for node in nodes(plan):
        if name := node.get("Relation Name"):
            match = re.fullmatch(r"(\w+?)_(\d+)", name)
            table, part = (match[1], int(match[2])) if match else (name, None)
            found.append((table, node["Node Type"], part))
    return found


def check(plan: dict[str, Any], may_scan: frozenset[str] = frozenset()) -> None:
    """One partition of every table, and no big table read from end to end."""
    scans = relations(plan)
    assert scans
    assert len({part for _, _, part in scans if part is not None}) <= 1, scans
    whole = {table for table, kind, _ in scans if kind == "Seq Scan"}
    assert not whole & (BIG_TABLES - may_scan), scans
