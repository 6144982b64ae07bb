"""Routes that create and delete links between memories."""

from __future__ import annotations

from reverie.contracts.memories.graph import (
    CreateLinkRequest,
    CreateLinkResponse,
    DeleteLinkResponse,
)
from reverie.domain.core.kinds import parse_edge_kind
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.graph.links import LinkRequest
from reverie_services.ingest.dependencies import LinkDependencies

routes = RouteTable[LinkDependencies]()


@routes.add("POST /v1/links", status=201)
async def create_link(
    deps: LinkDependencies, call: Call[CreateLinkRequest, None]
) -> CreateLinkResponse:
    """Link two memories."""
    body = call.body
    redacted = call.redactor.redact_value(body.metadata)
    link = LinkRequest(
        body.source, body.target, parse_edge_kind(body.type), body.weight, redacted.value
    )
    stored = await deps.links.put(call.principal, link, trace_headers())
    if stored.event:
        deps.publisher.publish_after_reply(call, call.principal.tenant, [stored.event])
    return CreateLinkResponse(id=stored.id, created=stored.created, redactions=redacted.count)


@routes.add("DELETE /v1/links/{id}")
async def delete_link(deps: LinkDependencies, call: Call[None, None]) -> DeleteLinkResponse:
    """Close an edge; reads of earlier moments still show it."""
    edge_id = await deps.short_ids.resolve(call.principal, "link", call.path["id"])
    event = await deps.links.close(call.principal, edge_id, trace_headers())
    deps.publisher.publish_after_reply(call, call.principal.tenant, [event])
    return DeleteLinkResponse(id=edge_id)
