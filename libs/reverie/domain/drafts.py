"""Memories in the making: what each message of a conversation gives, and what it is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from reverie.domain import cues, signs
from reverie.domain.about_files import reported
from reverie.domain.anchors import paths
from reverie.domain.checks_run import checks_run
from reverie.domain.exchanges import Exchange, exchanges_of
from reverie.domain.kinds import Kind
from reverie.domain.points import Point, points
from reverie.domain.prose import shorten
from reverie.domain.requests import is_command, statements
from reverie.domain.salience import KEPT, Rated, exact_things, of_agent, of_correction, of_user
from reverie.domain.slices import Slice
from reverie.domain.turns import TurnText, trace_status
from reverie.domain.words import index_text

MAX_CONTENT = 400
MIN_CONTENT = 24
"""Bytes: eight Chinese characters say as much as a few English words."""
RULE = 4.0
"""What a user's rule or preference is worth."""
MIDWAY = 0.5
"""What a report in the middle of the work must be worth beyond one at its end."""
ASKED = 60
"""Characters of a request that what came of it is told under."""
OUTCOME = 0.5
"""What the best of a last report is worth beyond its words."""


@dataclass
class Draft:
    """A memory in the making: `about` is what it says by itself, `changed` turns wrote files."""

    content: str
    turns: list[TurnText]
    kind: Kind
    worth: float
    about: str = ""
    changed: list[TurnText] = field(default_factory=list)
    asked: str = ""

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that it says by itself."""
        return frozenset(index_text(self.about or self.content).split())

    @cached_property
    def exact(self) -> frozenset[str]:
        """The exact things that it names by itself."""
        return exact_things(self.about or self.content)


def drafts_of(part: Slice) -> Iterator[Draft]:
    for exchange in exchanges_of(part):
        yield from _stated(exchange)
        for turn in exchange.replies:
            if turn.role == "tool":
                yield from _word_of_the_user(turn, exchange)
            elif turn.role == "assistant" and not exchange.refuted:
                yield from _report(turn, exchange)


def _stated(exchange: Exchange) -> Iterator[Draft]:
    """What the user states, one thing at a time."""
    if not exchange.opening or is_command(exchange.request):
        return
    content = exchange.opening.content
    quoted = bool(signs.QUOTED.search(content[:300]))
    corrects = bool(exchange.earlier and cues.REFUTED.search(content[:200]))
    for said in statements(content):
        rated = of_user(said, quoted) or (of_correction(said) if corrects else None)
        if rated and rated.worth >= KEPT:
            about = exchange.earlier if corrects or cues.LEANING.match(said) else ""
            text = f"{shorten(about, 70)}: {said}" if about else said
            turns = [exchange.opening]
            yield Draft(shorten(text, MAX_CONTENT), turns, rated.kind, rated.worth, about=said)


def _word_of_the_user(turn: TurnText, exchange: Exchange) -> Iterator[Draft]:
    """The user's answer to a question, or the reason of a refusal, as a tool's trace has it."""
    status = trace_status(turn.content)
    said = turn.content.partition("\n")[2].strip()
    if status == "answered" and said:
        for answer in said.splitlines():
            yield Draft(f"Asked and answered: {answer}", [turn], Kind.DECISION, 3.5)
    elif status == "rejected" and len(said.split()) >= 4:
        about = f" ({shorten(exchange.subject, 80)})" if exchange.subject else ""
        yield Draft(f"The user corrected the agent{about}: {said}", [turn], Kind.PREFERENCE, 4.0)


def _report(turn: TurnText, exchange: Exchange) -> Iterator[Draft]:
    """What a message of the agent reports; at the end of an exchange more counts."""
    final = exchange.last is turn
    found = [point for point in points(turn.content) if _tells(point)]
    rated = [of_agent(point.text, point.lead) for point in found]
    lifts = [
        0.5 * (exchange.assent is not None) + 0.5 * (final and n == 0) for n in range(len(found))
    ]
    worths = [one.worth + lift for one, lift in zip(rated, lifts, strict=True)]
    ruled = of_user(exchange.subject)
    asked = exchange.request and not (ruled and ruled.worth >= RULE)
    for n, point in enumerate(found[1:], start=1):
        # A list that was too long for one point says its first things first.
        worths[n] -= 0.5 * (point.item and point.lead == found[n - 1].lead != "")
    best = worths.index(max(worths)) if final and worths and asked else -1
    for n, (point, one) in enumerate(zip(found, rated, strict=True)):
        # What came of a request is kept, if there is anything to it.
        worth = worths[n] + OUTCOME * (n == best and one.worth > 0)
        if worth >= KEPT + (0 if final else MIDWAY):
            yield _reported(turn, exchange, point, Rated(one.kind, worth), n == best)


def _tells(point: Point) -> bool:
    """Whether a point is no question, and more than a word on how it went."""
    few = len(point.said.encode()) < MIN_CONTENT
    return not point.text.endswith(("?", "？")) and not (few and not exact_things(point.text))


def _reported(turn: TurnText, exchange: Exchange, point: Point, rated: Rated, came: bool) -> Draft:
    """`came`: it is what came of the request, under which it is told."""
    final = exchange.last is turn
    trouble = exchange.trouble if rated.kind is Kind.BUG else ""
    text = _alone(point, trouble or exchange.subject, bool(trouble))
    if came and not trouble:
        text = f"{shorten(exchange.subject, ASKED)} → {point.said}"
        text = shorten(text if exchange.subject else point.said, MAX_CONTENT)
    draft = Draft(text, [turn], rated.kind, rated.worth + bool(trouble), about=point.said)
    draft.asked = exchange.request
    if (trouble or came) and exchange.opening:
        draft.turns.insert(0, exchange.opening)
    if final and exchange.assent:
        draft.turns.append(exchange.assent)
    draft.changed = reported(point.text, exchange.replies, turn, final)
    return draft


def _alone(point: Point, subject: str, always: bool = False) -> str:
    """The point so that it stands alone: under its lead, else under what was asked."""
    text = point.said
    alone = bool(paths(text)) or ("`" in text and not point.lead)
    if subject and (always or cues.LEANING.match(text) or not alone):
        text = f"{shorten(subject, ASKED)}: {text}"
    return shorten(text, MAX_CONTENT)


def commands_of(turns: Iterable[TurnText]) -> list[Draft]:
    return [
        Draft(f"Command that checks the work here: `{one}`", [turn], Kind.SKILL, 2.0)
        for one, turn in checks_run(turns)
    ]
