"""Creates and closes edges that a client requests, and publishes their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, memory_subject
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, InvalidInput, NotFound
from reverie.domain.core.ids import new_id, short_id
from reverie.domain.core.kinds import EdgeKind
from reverie.store.db.database import Database, TenantConnection
from reverie.store.db.idempotency import retry_on_conflict, run_once

_CYCLE_NAMES = {"cycle": "causal cycle", "ring": "ring of tasks"}
_HIDDEN_LABEL = "a memory that this key may not read"


@dataclass(frozen=True)
class LinkRequest:
    """An edge to be added: validated and redacted already."""

    source: UUID
    target: UUID
    kind: EdgeKind
    weight: float = 1.0
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredLink:
    """An edge that was asked for; `event` is None where it stood like that already."""

    id: UUID
    created: bool
    event: OutgoingEvent | None


class LinkStore:
    """The edges of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(
        self, principal: Principal, link: LinkRequest, headers: Mapping[str, str]
    ) -> StoredLink:
        """Stores an edge, or raises the weight of the one that exists. An end that was merged is
        the memory it was merged into.

        Raises `NotFound` if an end may not be read, `Forbidden` if the scope of the first may not
        be written, `InvalidInput` if both are one memory, `Conflict` naming the cycle that the edge
        would close.
        """

        async def put() -> dict[str, Any]:
            async with self._db.tenant_transaction(principal.tenant) as connection:
                found: dict[str, Any] = await run_once(
                    connection, "link", lambda: _put_edge(connection, principal, link, headers)
                )
            return found

        found = await retry_on_conflict(put, "the graph")
        event = None
        if found["change"] != "none":
            event = _build_event(principal, "linked", found["payload"], headers, found["event"])
        return StoredLink(UUID(found["id"]), found["change"] == "created", event)

    async def close(
        self, principal: Principal, edge: UUID, headers: Mapping[str, str]
    ) -> OutgoingEvent:
        """Closes an open edge. Raises `NotFound` and `Forbidden`.

        `A led_to B` is `B caused_by A`: a key that may write either end may close it.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            closed = await run_once(
                connection, "unlink", lambda: _close_edge(connection, principal, edge, headers)
            )
        return _build_event(principal, "unlinked", closed["payload"], headers, closed["event"])


def _build_event(
    principal: Principal, name: str, body: Mapping[str, Any], headers: Mapping[str, str], event: str
) -> OutgoingEvent:
    subject = memory_subject(principal.tenant_name, name)
    return build_outgoing_event(principal.tenant, subject, body, headers, UUID(event))


async def _close_edge(
    connection: TenantConnection, principal: Principal, edge: UUID, headers: Mapping[str, str]
) -> dict[str, Any]:
    """Closes the edge; returns its description and its event."""
    row = await connection.fetch_row("link_open", edge, list(principal.reads))
    if row is None:
        raise NotFound("link", str(edge))
    if not (row["kind"] == EdgeKind.LED_TO and principal.may_write(row["dst_scope"])):
        principal.check_write(row["src_scope"])
    ends = {"from": str(row["src"]), "to": str(row["dst"]), "type": row["kind"]}
    body = {"id": str(edge), "version": 1, **ends}
    event = str(new_id())
    item = {"id": str(edge), "actor": principal.actor, "event": event, "payload": body}
    if not await connection.fetch_value("link_close", principal.tenant_name, item, dict(headers)):
        raise NotFound("link", str(edge))
    return {"payload": body, "event": event}


async def _put_edge(
    connection: TenantConnection,
    principal: Principal,
    link: LinkRequest,
    headers: Mapping[str, str],
) -> dict[str, Any]:
    """Stores the edge; returns its id, what changed, and the event."""
    merged = await connection.fetch_rows("merge_targets", [link.source, link.target])
    targets: dict[UUID, UUID] = {row["id"]: row["into"] for row in merged}
    source = targets.get(link.source, link.source)
    target = targets.get(link.target, link.target)
    ends = await _load_ends(connection, principal, [source, target])
    for named, end in ((link.source, source), (link.target, target)):
        if end not in ends:
            raise NotFound("memory", str(named))
    principal.check_write(ends[source]["scope"])
    event = str(new_id())
    item = {
        "id": str(new_id()),
        "from": str(source),
        "to": str(target),
        "type": link.kind.value,
        "weight": link.weight,
        "metadata": link.metadata,
        "actor": principal.actor,
        "event": event,
    }
    found = await connection.fetch_value("link_put", principal.tenant_name, item, dict(headers))
    if found.get("problem") == "self":
        raise InvalidInput("to", "is the memory that the link leaves from")
    if found.get("problem") in _CYCLE_NAMES:
        message = f"{link.kind.value} would close a {_CYCLE_NAMES[found['problem']]}"
        raise await build_cycle_error(
            connection, principal, message, [UUID(node) for node in found["path"]]
        )
    return {**found, "event": event}


async def build_cycle_error(
    connection: TenantConnection, principal: Principal, message: str, path: Sequence[UUID]
) -> Conflict:
    """The refusal: which memories would be joined to a ring. Hidden ones stay nameless."""
    ends = await _load_ends(connection, principal, path)
    cycle = [
        {"id": str(node), "label": ends[node]["label"]}
        if node in ends
        else {"id": None, "label": _HIDDEN_LABEL}
        for node in path
    ]
    cycle_text = " → ".join(
        f"{short_id(node)} ({' '.join(ends[node]['label'].split())[:40]})"
        if node in ends
        else f"({_HIDDEN_LABEL})"
        for node in path
    )
    return Conflict(f"{message}: {cycle_text}", {"path": cycle})


async def _load_ends(
    connection: TenantConnection, principal: Principal, ids: Sequence[UUID]
) -> dict[UUID, asyncpg.Record]:
    found = await connection.fetch_rows("link_ends", list(ids), list(principal.reads))
    return {row["id"]: row for row in found}
