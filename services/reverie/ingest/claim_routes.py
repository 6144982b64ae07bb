"""Claims that were learned, over HTTP."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from reverie.bus.relay import publish_now
from reverie.contracts.base import Name
from reverie.contracts.claims import Claim, ClaimBody, ClaimLearned, ClaimPage, Tag
from reverie.contracts.memories import Remember
from reverie.contracts.views import memory_body
from reverie.domain.access import Principal
from reverie.domain.claims import SURENESS, Learned, learned
from reverie.domain.confidence import HalfLives
from reverie.domain.errors import Invalid
from reverie.domain.memory import Memory
from reverie.domain.redaction import redact
from reverie.domain.scopes import slug
from reverie.ingest.accept import Accepted, accept
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, ScopedQuery, cut_page
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.memories import events_of


class ClaimQuery(ScopedQuery):
    """Filters of `GET /v1/claims`."""

    topic: Name | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of claims."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/claims", doors.learn, Claim, answer=ClaimLearned, status=201,
              makes=lambda _: 1,
              summary="Store what was learned, with how sure it is"),
        Route("GET", "/v1/claims", doors.claims, query=ClaimQuery, answer=ClaimPage,
              summary="List what was learned, newest first"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def learn(self, call: Call[Claim, None]) -> ClaimLearned:
        """`POST /v1/claims`."""
        who, parts, body = call.principal, self._parts, call.body
        told_by = (await parts.sessions.get(who, body.session)).agent if body.session else None
        tag, secrets = _tag(body, datetime.now(UTC).date())
        accepted = self._accepted(who, body, tag, told_by)
        written = await parts.claims.learn(who, accepted.memory, headers := inject_headers())
        if events := events_of(who, written, headers):
            call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, events))
        return ClaimLearned(
            id=written.id,
            status=written.outcome.value,
            version=written.version,
            redactions=accepted.redactions + secrets,
            key=tag.key,
            learned=Tag.model_validate(tag.metadata),
        )

    def _accepted(self, who: Principal, body: Claim, tag: Learned, told_by: str | None) -> Accepted:
        memory = Remember(
            content=tag.content,
            kind=body.kind,
            scope=body.scope,
            key=tag.key,
            supersede_reason=f"verified again on {tag.verified.isoformat()}",
            tags=["learned"],
            session=body.session,
            confidence=SURENESS[tag.confidence],
            metadata={"learned": tag.metadata},
        )
        return accept(memory, who, self._parts.settings, told_by)

    async def claims(self, call: Call[None, ClaimQuery]) -> ClaimPage:
        """`GET /v1/claims`."""
        who, query = call.principal, call.query
        found = await self._parts.claims.page(
            who,
            query.below(),
            query.limit + 1,
            query.readable(who),
            slug(query.topic) if query.topic else None,
        )
        items, following = cut_page(found, query.limit, lambda one: ById(id=one.id))
        lives = self._parts.settings.half_lives
        return ClaimPage(items=[_body(one, lives) for one in items], next=following)


def _tag(body: Claim, today: date) -> tuple[Learned, int]:
    """The claim without secrets, and how many it held. Raises `Invalid` for a day to come."""
    # Somewhere it is tomorrow already.
    if body.verified > today + timedelta(days=1):
        raise Invalid("verified", "lies in the future")
    claim, topic = redact(body.claim), redact(body.topic)
    tag = learned(topic.text, claim.text, body.confidence, body.domains, body.verified)
    return tag, claim.count + topic.count


def _body(memory: Memory, lives: HalfLives) -> ClaimBody:
    tag = Tag.model_validate(memory.metadata["learned"])
    return ClaimBody(**memory_body(memory, lives).model_dump(), learned=tag)
