"""Routes for dead letters: an administrator lists, reads and replays those of the tenant."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from reverie.bus.dead_letters import (
    DeadLetter,
    list_dead_letters,
    load_dead_letter,
    replay_dead_letters,
)
from reverie.bus.interface import MessageBus
from reverie.contracts.admin import (
    DeadLetterBody,
    DeadLetterDetail,
    DeadLetterPage,
    ReplayResponse,
)
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import InvalidInput
from reverie.domain.redaction.redactor import Redactor
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import CursorPosition, PageQuery, cut_page, decode_cursor
from reverie.runtime.http.routes import RouteTable

_SequenceNumber = Annotated[int, Field(ge=1, lt=2**63)]
_parse_number = TypeAdapter(_SequenceNumber)


class SequenceCursor(CursorPosition):
    """A cursor of a list in the order of numbers in a stream."""

    seq: _SequenceNumber


routes = RouteTable[MessageBus]()


@routes.add("GET /v1/admin/dead-letters")
async def list_letters(bus: MessageBus, call: Call[None, PageQuery]) -> DeadLetterPage:
    """List the dead letters of the tenant, oldest first."""
    tenant = _find_tenant(call.principal)
    after = decode_cursor(call.query.cursor, SequenceCursor)
    letters = await list_dead_letters(
        bus, limit=call.query.limit + 1, after=after.seq if after else 0, tenant=tenant
    )
    items, next_cursor = cut_page(
        letters, call.query.limit, lambda letter: SequenceCursor(seq=letter.seq)
    )
    bodies = [DeadLetterBody(**_describe(item, call.redactor)) for item in items]
    return DeadLetterPage(items=bodies, next=next_cursor)


@routes.add("GET /v1/admin/dead-letters/{seq}")
async def get_letter(bus: MessageBus, call: Call[None, None]) -> DeadLetterDetail:
    """Get a dead letter with its body."""
    letter = await load_dead_letter(bus, _read_number(call), _find_tenant(call.principal))
    text = call.redactor.redact(letter.data.decode(errors="replace")).text
    return DeadLetterDetail(**_describe(letter, call.redactor), data=text)


@routes.add("POST /v1/admin/dead-letters/{seq}/replay")
async def replay_letter(bus: MessageBus, call: Call[None, None]) -> ReplayResponse:
    """Send a dead letter again."""
    tenant = _find_tenant(call.principal)
    return ReplayResponse(replayed=await replay_dead_letters(bus, _read_number(call), None, tenant))


def _find_tenant(principal: Principal) -> str:
    """The tenant whose letters these are: they concern any of its scopes."""
    principal.check_admin("*")
    return principal.tenant_name


def _read_number(call: Call[Any, Any]) -> int:
    try:
        return _parse_number.validate_python(call.path["seq"])
    except ValidationError:
        raise InvalidInput("seq", "is not the number of a dead letter") from None


def _describe(letter: DeadLetter, redactor: Redactor) -> dict[str, Any]:
    return {
        "seq": letter.seq,
        "at": letter.at,
        "stream": letter.origin.stream,
        "consumer": letter.origin.consumer,
        "subject": redactor.redact(letter.subject).text,
        "reason": redactor.redact(letter.reason).text,
        "deliveries": letter.deliveries,
        "dropped_bytes": letter.dropped_bytes,
    }
