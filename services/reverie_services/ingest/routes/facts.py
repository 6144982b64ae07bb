"""Routes that store and list facts with their confidence and sources."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reverie.contracts.base import Name
from reverie.contracts.memories.memories import RememberRequest, build_memory_body
from reverie.contracts.memories.system_metadata import parse_fact
from reverie.contracts.memories.typed_memories import (
    AddFactRequest,
    AddFactResponse,
    FactBody,
    FactDetails,
    FactPage,
)
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import InvalidInput
from reverie.domain.extraction.learned_facts import CONFIDENCE_BY_LEVEL, build_learned_fact
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, ScopedQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.memories import build_events
from reverie_services.ingest.dependencies import FactDependencies
from reverie_services.ingest.write.prepared_records import prepare_memory


class FactQuery(ScopedQuery):
    """Filters of `GET /v1/facts`."""

    topic: Name | None = None


routes = RouteTable[FactDependencies]()


@routes.add("POST /v1/facts", status=201, count_new_memories=lambda _: 1)
async def add_fact(deps: FactDependencies, call: Call[AddFactRequest, None]) -> AddFactResponse:
    """Store a fact with its confidence."""
    principal, body = call.principal, call.body
    session = await deps.sessions.get(principal, body.session) if body.session else None
    # Somewhere it is tomorrow already.
    if body.verified > datetime.now(UTC).date() + timedelta(days=1):
        raise InvalidInput("verified", "lies in the future")
    statement, topic = call.redactor.redact(body.statement), call.redactor.redact(body.topic)
    fact = build_learned_fact(
        topic.text, statement.text, body.confidence, body.domains, body.verified
    )
    request = RememberRequest(
        content=fact.content,
        kind=body.kind,
        scope=body.scope,
        key=fact.key,
        supersede_reason=f"verified again on {fact.verified.isoformat()}",
        tags=["fact"],
        session=body.session,
        confidence=CONFIDENCE_BY_LEVEL[fact.confidence],
        metadata={"fact": fact.metadata},
    )
    prepared = prepare_memory(
        request, principal, call.redactor, deps.settings, session, by_system=True
    )
    written = await deps.facts.learn(principal, prepared.memory, headers := trace_headers())
    deps.publisher.publish_after_reply(
        call, principal.tenant, build_events(principal, written, headers)
    )
    return AddFactResponse(
        id=written.id,
        status=written.outcome.value,
        version=written.version,
        redactions=prepared.redactions + statement.count + topic.count,
        key=fact.key,
        fact=FactDetails.model_validate(fact.metadata),
    )


@routes.add("GET /v1/facts")
async def list_facts(deps: FactDependencies, call: Call[None, FactQuery]) -> FactPage:
    """List facts, newest first."""
    principal, query = call.principal, call.query
    rows = await deps.facts.page(
        principal,
        query.before_id(),
        query.limit + 1,
        query.readable_scope(principal),
        slugify(query.topic) if query.topic else None,
    )
    items, next_cursor = cut_page(rows, query.limit, lambda item: IdCursor(id=item.id))
    decay = deps.settings.decay_policy
    bodies = [
        FactBody(**build_memory_body(item, decay).model_dump(), fact=fact)
        for item in items
        if (fact := parse_fact(item.metadata.get("fact")))
    ]
    return FactPage(items=bodies, next=next_cursor)
