"""Edges told by hand: put and closed, each with its event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from reverie.contracts.events import Outgoing, memory_subject, outgoing
from reverie.domain.access import Principal
from reverie.domain.edges import EdgeKind
from reverie.domain.errors import Conflict, Invalid, NotFound
from reverie.domain.ids import new_id, short_id
from reverie.store.database import Database, Tenant
from reverie.store.effects import once
from reverie.store.races import retried

_RINGS = {"cycle": "causal cycle", "ring": "ring of tasks"}
_HIDDEN = "a memory that this key may not read"


@dataclass(frozen=True)
class Link:
    """An edge about to be told: validated and redacted already."""

    source: UUID
    target: UUID
    kind: EdgeKind
    weight: float = 1.0
    metadata: dict[str, Any] = field(default_factory=dict)


class Links:
    """The edges of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(
        self, who: Principal, link: Link, headers: Mapping[str, str]
    ) -> tuple[UUID, Outgoing | None]:
        """The id of the edge that stands now, and its event where it is new.

        Raises `NotFound` where an end may not be read, `Forbidden` where the scope of the first
        may not be written, `Conflict` naming the way round that the edge would close.
        """
        if link.source == link.target:
            raise Invalid("to", "is the memory that the link leaves from")

        async def put() -> dict[str, Any]:
            async with self._db.tenant(who.tenant) as tenant:
                found: dict[str, Any] = await once(
                    tenant, "link", lambda: _put(tenant, who, link, headers)
                )
            return found

        found = await retried(put, "the graph")
        edge = UUID(found["id"])
        if not found["created"]:
            return edge, None
        told = _told(edge, link.source, link.kind.value, link.target)
        return edge, _outgoing(who, "linked", told, headers, found["event"])

    async def close(self, who: Principal, edge: UUID, headers: Mapping[str, str]) -> Outgoing:
        """Closes an open edge. Raises `NotFound` and `Forbidden`.

        `A led_to B` is `B caused_by A`: who may write either end may take it back.
        """
        async with self._db.tenant(who.tenant) as tenant:
            done = await once(tenant, "unlink", lambda: _close(tenant, who, edge, headers))
        return _outgoing(who, "unlinked", done["told"], headers, done["event"])


def _outgoing(
    who: Principal, name: str, told: Mapping[str, Any], headers: Mapping[str, str], event: str
) -> Outgoing:
    subject = memory_subject(who.tenant_name, name)
    return outgoing(who.tenant, subject, told, headers, UUID(event))


async def _close(
    tenant: Tenant, who: Principal, edge: UUID, headers: Mapping[str, str]
) -> dict[str, Any]:
    """What is told of the edge that was closed, and the event that tells it."""
    row = await tenant.row("link_open", edge, list(who.reads))
    if row is None:
        raise NotFound("link", str(edge))
    if not (row["kind"] == EdgeKind.LED_TO and who.may_write(row["dst_scope"])):
        who.check_write(row["src_scope"])
    told = _told(edge, row["src"], row["kind"], row["dst"])
    event = str(new_id())
    item = {"id": str(edge), "who": who.actor, "event": event, "told": told}
    if not await tenant.value("link_close", who.tenant_name, item, dict(headers)):
        raise NotFound("link", str(edge))
    return {"told": told, "event": event}


async def _put(
    tenant: Tenant, who: Principal, link: Link, headers: Mapping[str, str]
) -> dict[str, Any]:
    """The id of the edge that stands, whether it is new, and the event that tells of it then."""
    ends = await _ends(tenant, who, [link.source, link.target])
    for end in (link.source, link.target):
        if end not in ends:
            raise NotFound("memory", str(end))
    who.check_write(ends[link.source]["scope"])
    edge, event = new_id(), str(new_id())
    item = {
        "id": str(edge),
        "from": str(link.source),
        "to": str(link.target),
        "type": link.kind.value,
        "weight": link.weight,
        "metadata": link.metadata,
        "who": who.actor,
        "event": event,
        "told": _told(edge, link.source, link.kind.value, link.target),
    }
    found = await tenant.value("link_put", who.tenant_name, item, dict(headers))
    if found.get("problem") in _RINGS:
        said = f"{link.kind.value} would close a {_RINGS[found['problem']]}"
        raise await refused_ring(tenant, who, said, [UUID(node) for node in found["path"]])
    return {"id": found["id"], "created": found["created"], "event": event}


async def refused_ring(tenant: Tenant, who: Principal, said: str, path: Sequence[UUID]) -> Conflict:
    """The refusal: which memories would be joined to a ring. Hidden ones stay nameless."""
    ends = await _ends(tenant, who, path)
    ring = [
        {"id": str(node), "label": ends[node]["label"]}
        if node in ends
        else {"id": None, "label": _HIDDEN}
        for node in path
    ]
    way = " → ".join(
        f"{short_id(node)} ({' '.join(ends[node]['label'].split())[:40]})"
        if node in ends
        else f"({_HIDDEN})"
        for node in path
    )
    return Conflict(f"{said}: {way}", {"path": ring})


async def _ends(tenant: Tenant, who: Principal, ids: Sequence[UUID]) -> dict[UUID, asyncpg.Record]:
    found = await tenant.rows("link_ends", list(ids), list(who.reads))
    return {row["id"]: row for row in found}


def _told(edge: UUID, source: UUID, kind: str, target: UUID) -> dict[str, Any]:
    """What the event says of an edge."""
    return {
        "id": str(edge),
        "version": 1,
        "from": str(source),
        "to": str(target),
        "type": kind,
    }
