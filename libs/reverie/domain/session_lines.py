"""The lines of a session's own memory: what was asked, and what came of it."""

from __future__ import annotations

from reverie.domain.exchanges import Exchange, outcome_of
from reverie.domain.prose import shorten
from reverie.domain.requests import is_command
from reverie.domain.turns import TurnText

SHORTEST_LINE, TITLE = 40, 54


def lines_of(requests: list[Exchange], room: int) -> tuple[list[str], list[TurnText]]:
    """The lines of a session's memory within `room` characters, and the turns they cite."""
    lines = [f"Session: {_title(requests)}"]
    cited = [requests[0].opening] if requests[0].opening else []
    told = [exchange for exchange in requests if not is_command(exchange.request)] or requests
    left = room - len(lines[0])
    found: dict[int, str] = {}
    # The end says what came of it, and is told in any case; the beginning what it was about.
    for place in dict.fromkeys([len(told) - 1, 0, *reversed(range(len(told)))]):
        if found and left < SHORTEST_LINE:
            break
        line, turns = _line(told[place], lines[0])
        if not found and left >= SHORTEST_LINE:
            line = shorten(line, left)
        if line and line not in found.values() and len(line) <= left:
            found[place] = line
            cited += turns
            left -= len(line)
    return [*lines, *(found[place] for place in sorted(found))], list(dict.fromkeys(cited))


def _title(requests: list[Exchange]) -> str:
    """The first request; a slash command with the title of what it was called on."""
    first, *rest = (exchange.request for exchange in requests)
    if is_command(first) and rest and not is_command(rest[0]):
        return shorten(f"{first} ({rest[0]})", 100)
    return shorten(requests[0].subject or first, TITLE)


def _line(exchange: Exchange, title: str) -> tuple[str, list[TurnText]]:
    """What was asked, unless the title says it, and what came of it."""
    subject = shorten(exchange.subject or exchange.request, 110)
    asked = "" if subject[:40] in title else subject
    outcome = outcome_of(exchange)
    came = f"→ {shorten(outcome[1][0], 160)}" if outcome else ""
    turns = [turn for turn in (exchange.opening, outcome[0] if outcome else None) if turn]
    text = " ".join(filter(None, (asked, came)))
    return (f"- {text}" if text else ""), turns
