"""Routes that create and delete links between memories."""

from __future__ import annotations

from reverie.contracts.graph import CreateLinkRequest, CreateLinkResponse, DeleteLinkResponse
from reverie.domain.core.kinds import parse_edge_kind
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import Route
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.links import LinkRequest
from reverie_services.ingest.dependencies import LinkDependencies


def build_link_routes(deps: LinkDependencies) -> list[Route]:
    """The routes of links."""
    handlers = LinkHandlers(deps)
    return [
        Route(
            "POST",
            "/v1/links",
            handlers.create_link,
            CreateLinkRequest,
            response=CreateLinkResponse,
            status=201,
            summary="Link two memories",
        ),
        Route(
            "DELETE",
            "/v1/links/{id}",
            handlers.delete_link,
            response=DeleteLinkResponse,
            summary="Close an edge; reads of earlier moments still show it",
        ),
    ]


class LinkHandlers:
    """Handlers of links."""

    def __init__(self, deps: LinkDependencies) -> None:
        self._deps = deps

    async def create_link(self, call: Call[CreateLinkRequest, None]) -> CreateLinkResponse:
        """`POST /v1/links`."""
        body = call.body
        redacted = call.redactor.redact_value(body.metadata)
        link = LinkRequest(
            body.source, body.target, parse_edge_kind(body.type), body.weight, redacted.value
        )
        stored = await self._deps.links.put(call.principal, link, trace_headers())
        if stored.event:
            self._deps.publisher.publish_after_reply(call, call.principal.tenant, [stored.event])
        return CreateLinkResponse(id=stored.id, created=stored.created, redactions=redacted.count)

    async def delete_link(self, call: Call[None, None]) -> DeleteLinkResponse:
        """`DELETE /v1/links/{id}`."""
        edge_id = await self._deps.short_ids.resolve(call.principal, "link", call.path["id"])
        event = await self._deps.links.close(call.principal, edge_id, trace_headers())
        self._deps.publisher.publish_after_reply(call, call.principal.tenant, [event])
        return DeleteLinkResponse(id=edge_id)
