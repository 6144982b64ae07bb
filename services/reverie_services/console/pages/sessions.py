"""Conversations with a lane of memory beside them: given, remembered, learned."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from reverie.domain.redaction.redactor import Redactor
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.rendering import render_template
from reverie_services.console.requests import file_response
from reverie_services.console.visit import PageValues, Visit

FILTERS = ("agent", "project", "session")
PAGE_SIZE = 50
_LANE_ITEMS = 200
_SHARED_TURNS = 2_000
_Body = Mapping[str, Any]


@dataclass(frozen=True)
class LaneTurn:
    """A turn with what memory did around it.

    `recalls`: what was asked of memory after this turn and before the next; `memories`: what was
    made from this turn, or else within that time.
    """

    turn: _Body
    recalls: list[_Body] = field(default_factory=list)
    memories: list[_Body] = field(default_factory=list)


@PAGES.add("sessions", "sessions.html", "Sessions")
async def list_sessions(visit: Visit) -> PageValues:
    """Sessions, newest first."""
    filters = {name: visit.ask(name) for name in FILTERS}
    page = await visit.get("/v1/sessions", limit=PAGE_SIZE, cursor=visit.ask("cursor"), **filters)
    return {"listed": page["items"], "next_cursor": page.get("next"), "filters": filters}


@PAGES.add("sessions/{id}", "session.html", of="sessions")
async def show_session(visit: Visit) -> PageValues:
    """One page of turns, or, with `step`, the turns up to that one."""
    session = visit.values["id"]
    step = visit.number("step", 0, 1_000_000)
    if step:
        turns, next_cursor = await _load_turns(visit, session, step)
    else:
        page = await visit.get(
            f"/v1/sessions/{quote(session, safe='')}/turns",
            limit=PAGE_SIZE,
            cursor=visit.ask("cursor"),
        )
        turns, next_cursor = page["items"], page.get("next")
    return {
        **await _load_lane(visit, session, turns),
        "next_cursor": None if step else next_cursor,
        "step": step,
        "is_last_step": len(turns) < step or next_cursor is None,
    }


@PAGES.add("sessions/{id}/share", "shared_session.html", of="sessions")
async def share_session(visit: Visit) -> OutgoingResponse:
    """The conversation as one file, after the privacy filter: the tenant's secrets are left out."""
    session = visit.values["id"]
    turns, _ = await _load_turns(visit, session, _SHARED_TURNS)
    values = await _load_lane(visit, session, turns)
    redactor = (await visit.load_redactor(visit.principal.tenant)).naming(visit.principal.may_read)
    shared = _redact(redactor, {"turns": [vars(lane) for lane in values["turns"]]})
    page = render_template(
        "shared_session.html", visit.language, {"session": values["session"], **shared}
    )
    return file_response(f"session-{session[-8:]}.html", "text/html", page)


def _redact(redactor: Redactor, value: dict[str, Any]) -> dict[str, Any]:
    redacted: dict[str, Any] = redactor.redact_value(value).value
    return redacted


async def _load_turns(visit: Visit, session: str, most: int) -> tuple[list[_Body], str | None]:
    turns: list[_Body] = []
    cursor: str | None = None
    while len(turns) < most:
        page = await visit.get(
            f"/v1/sessions/{quote(session, safe='')}/turns",
            limit=min(200, most - len(turns)),
            cursor=cursor,
        )
        turns += page["items"]
        cursor = page.get("next")
        if cursor is None:
            break
    return turns, cursor


async def _load_lane(visit: Visit, session: str, turns: Sequence[_Body]) -> PageValues:
    sessions, recalls, memories = await asyncio.gather(
        visit.try_get("/v1/sessions", session=session, limit=1),
        visit.try_get("/v1/traces", session=session, limit=_LANE_ITEMS),
        visit.try_get("/v1/memories", session=session, limit=_LANE_ITEMS),
    )
    found = (sessions or {}).get("items", [])
    return {
        "session": found[0] if found else {"id": session},
        "turns": list(
            _place_in_lane(
                turns, (recalls or {}).get("items", []), (memories or {}).get("items", [])
            )
        ),
    }


def _place_in_lane(
    turns: Sequence[_Body], recalls: Sequence[_Body], memories: Sequence[_Body]
) -> Iterator[LaneTurn]:
    """Each turn with what belongs to it; what came after the last turn goes to that one."""
    numbers = {turn["id"]: number for number, turn in enumerate(turns)}
    placed = [LaneTurn(turn) for turn in turns]
    for recall in sorted(recalls, key=lambda each: each["at"]):
        if (number := _number_at(turns, recall["at"])) is not None:
            placed[number].recalls.append(recall)
    for memory in sorted(memories, key=lambda each: each["created_at"]):
        sources = [numbers[turn] for turn in memory["provenance"]["turns"] if turn in numbers]
        number = max(sources) if sources else _number_at(turns, memory["created_at"])
        if number is not None and (sources or not memory["provenance"]["turns"]):
            placed[number].memories.append(memory)
    return iter(placed)


def _number_at(turns: Sequence[_Body], at: str) -> int | None:
    """The number of the last turn that is not after a moment (timestamps sort as text)."""
    before = [number for number, turn in enumerate(turns) if turn["at"] <= at]
    return before[-1] if before else None
