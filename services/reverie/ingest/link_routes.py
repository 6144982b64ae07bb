"""What ingest takes of the graph over HTTP: links, told and taken back."""

from __future__ import annotations

from typing import Any

from reverie.bus.relay import publish_now
from reverie.contracts.events import Outgoing
from reverie.contracts.graph import Linked, NewLink, Unlinked
from reverie.domain.edges import parse_edge_kind
from reverie.domain.redaction import redact_value
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.links import Link


def routes(parts: Parts) -> list[Route]:
    """The table of links."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/links", doors.link, NewLink, answer=Linked, status=201,
              summary="Link two memories"),
        Route("DELETE", "/v1/links/{id}", doors.unlink, answer=Unlinked,
              summary="Take a link back; what was known before stays"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def link(self, call: Call[NewLink, None]) -> Linked:
        """`POST /v1/links`."""
        body = call.body
        clean = redact_value(body.metadata)
        link = Link(body.source, body.target, parse_edge_kind(body.type), body.weight, clean.value)
        edge, event = await self._parts.links.put(call.principal, link, inject_headers())
        if event:
            self._publish(call, event)
        return Linked(id=edge, created=event is not None, redactions=clean.count)

    async def unlink(self, call: Call[None, None]) -> Unlinked:
        """`DELETE /v1/links/{id}`."""
        edge = await self._parts.ids.named(call.principal, "link", call.path["id"])
        self._publish(call, await self._parts.links.close(call.principal, edge, inject_headers()))
        return Unlinked(id=edge)

    def _publish(self, call: Call[Any, Any], event: Outgoing) -> None:
        """Puts the event on the bus after the reply."""
        parts, tenant = self._parts, call.principal.tenant
        call.after(lambda: publish_now(parts.bus, parts.outbox, tenant, [event]))
