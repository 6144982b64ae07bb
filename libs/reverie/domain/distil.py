"""What lasts of a conversation, without a language model: chosen sentences, cleaned.

A slice is read as exchanges: something the user said, and what came of it. Kept are the user's
rules, wishes, choices and facts, each by itself; causes, changes and workings that the agent
reported; answers and corrections; and the commands that checked the work. Of these the weightiest,
as far as a share of what was said gives room. Tool outputs, code, greetings, announcements ("let me
look"), and that tests passed are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

from reverie.domain import cues, signs
from reverie.domain.anchors import files_of, paths
from reverie.domain.checks_run import checks_run
from reverie.domain.entities import entities_of
from reverie.domain.exchanges import Exchange, exchanges_of, outcome_of
from reverie.domain.kinds import Kind
from reverie.domain.points import Point, points
from reverie.domain.prose import shorten
from reverie.domain.requests import is_command, statements
from reverie.domain.salience import (
    KEPT,
    Rated,
    exact_things,
    of_agent,
    of_correction,
    of_user,
)
from reverie.domain.slices import Slice
from reverie.domain.turns import TurnText, trace_status
from reverie.domain.words import index_text

MAX_CONTENT = 400
MIN_CONTENT = 24
MAX_SESSION = 1_600
MAX_MEMORIES = 40
MAX_TAGS = 12
MAX_FILES = 16
# Of what was said in a slice, in characters: the share that its segments, and the session's own
# memory, may take; and what they may take however little (the session: by topic) or much was said.
SHARE, LEAST, MOST, SLACK = 0.22, 240, 6_000, 15
SESSION_SHARE, SESSION_LEAST, SHORTEST_LINE = 0.04, 55, 40
RULE = 4.0
"""What a user's rule or preference is worth."""
MIDWAY = 0.5
"""What a report in the middle of the work must be worth beyond one at its end."""
ASKED = 60
"""Characters of a request that what came of it is told under."""
NEW, MANY = 0.5, 8
"""What an exact thing that nothing weightier names is worth, and how many count at most."""
CUT = 90
"""A draft too long for the room that is left is cut behind a thing said, to no less than this."""
OUTCOME = 0.5
"""What the best of a last report is worth beyond its words."""


@dataclass(frozen=True)
class Distilled:
    """A memory made from turns. `priority` runs from 0 to 1; `at` is when it became true.

    `by`: the prompt with its version and the model that worded it; empty where rules did.
    """

    content: str
    kind: Kind
    tags: tuple[str, ...]
    priority: float
    files: tuple[str, ...]
    turns: tuple[UUID, ...]
    at: datetime
    by: str = ""


@dataclass
class _Draft:
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


def distil(slices: Sequence[Slice], roots: Sequence[str] = ()) -> list[Distilled]:
    """The lasting memories of a session's slices, in order of time, near-copies collapsed.

    At most `MAX_MEMORIES`, the less important left out. `roots` are the workspace folders
    that absolute paths are relative to. The same slices give the same memories.
    """
    known = [file for part in slices for turn in part.turns for file in _worked_on(turn, roots)]
    return distinct(_made(draft, roots, known) for part in slices for draft in _chosen(part))


def distinct(segments: Iterable[Distilled]) -> list[Distilled]:
    """Segments of several slices, near-copies collapsed, at most `MAX_MEMORIES`."""
    kept = _distinct((set(index_text(one.content).split()), one) for one in segments)
    ranked = sorted(kept, key=lambda one: -one.priority)[:MAX_MEMORIES]
    return [one for one in kept if one in ranked]


def session_memory(slices: Sequence[Slice], roots: Sequence[str] = ()) -> Distilled | None:
    """What a session was asked and what came of it; None where nobody asked anything."""
    exchanges = [exchange for part in slices for exchange in exchanges_of(part)]
    requests = [exchange for exchange in exchanges if exchange.request]
    if not requests or not requests[0].opening:
        return None
    everything = [turn for part in slices for turn in part.turns]
    room = _room(everything, SESSION_SHARE, SESSION_LEAST * len(slices), MAX_SESSION)
    lines, cited = _told(requests, room)
    draft = _Draft("\n".join(lines), cited, Kind.SESSION, KEPT, changed=_writers(everything))
    known = [file for turn in everything for file in _worked_on(turn, roots)]
    return replace(_made(draft, roots, known), at=requests[0].opening.at)


def _told(requests: list[Exchange], room: int) -> tuple[list[str], list[TurnText]]:
    """The lines of a session's memory within `room` characters, and the turns they cite."""
    lines = [f"Session: {_title(requests)}"]
    cited = [requests[0].opening] if requests[0].opening else []
    told = [exchange for exchange in requests if not is_command(exchange.request)] or requests
    # The end says what came of it, and is told in any case; the beginning what it was about.
    for exchange in dict.fromkeys([told[-1], told[0], *reversed(told)]):
        line, turns = _line(exchange, lines[0])
        left = room - sum(map(len, lines))
        if len(lines) == 1 and left >= SHORTEST_LINE:
            line = shorten(line, left)
        if line and line not in lines and len(line) <= left:
            lines.insert(1, line)
            cited += turns
    head, *rest = lines
    order = [_line(one, head)[0][:SHORTEST_LINE] for one in told]
    rest.sort(
        key=lambda line: order.index(line[:SHORTEST_LINE]) if line[:SHORTEST_LINE] in order else 0
    )
    return [head, *rest], list(dict.fromkeys(cited))


def _title(requests: list[Exchange]) -> str:
    """The first request; a slash command with the title of what it was called on."""
    first, *rest = (exchange.request for exchange in requests)
    if is_command(first) and rest and not is_command(rest[0]):
        return shorten(f"{first} ({rest[0]})", 100)
    return shorten(requests[0].subject or first, 54)


def _line(exchange: Exchange, title: str) -> tuple[str, list[TurnText]]:
    """What was asked, unless the title says it, and what came of it."""
    subject = shorten(exchange.subject or exchange.request, 110)
    asked = "" if subject[:40] in title else subject
    outcome = outcome_of(exchange)
    came = f"→ {shorten(outcome[1][0], 160)}" if outcome else ""
    turns = [turn for turn in (exchange.opening, outcome[0] if outcome else None) if turn]
    text = " ".join(filter(None, (asked, came)))
    return (f"- {text}" if text else ""), turns


def _chosen(part: Slice) -> list[_Draft]:
    """The weightiest drafts of a slice that there is room for, in order of time.

    What names exact things that none of those taken before it names weighs more. A user's rules
    need no room. What a weightier one says too is left to it, with its turns.
    """
    drafts = [draft for draft in _drafts(part) if len(draft.content) >= MIN_CONTENT]
    room = _room(part.turns, SHARE, LEAST, MOST)
    chosen: list[_Draft] = []
    for draft in _by_weight(drafts, chosen):
        twin = next((one for one in chosen if _says_too(one, draft)), None)
        if twin:
            twin.turns += draft.turns
        elif draft.worth >= RULE or _fits(draft, room):
            chosen.append(draft)
            room -= len(draft.content)
    taken = {id(draft) for draft in chosen}
    return [draft for draft in drafts if id(draft) in taken] + _commands(part.turns)


def _by_weight(drafts: Sequence[_Draft], chosen: Sequence[_Draft]) -> Iterator[_Draft]:
    """The drafts, each time the one that adds most to those `chosen` by then."""
    waiting = list(drafts)
    while waiting:
        told = frozenset[str]().union(*(one.exact for one in chosen))
        weights = [one.worth + NEW * min(len(one.exact - told), MANY) for one in waiting]
        yield waiting.pop(weights.index(max(weights)))


def _fits(draft: _Draft, room: int) -> bool:
    """Whether there is room for it, cut between two things said where that makes it fit."""
    if len(draft.content) > room + SLACK >= CUT:
        cut = shorten(draft.content, room + SLACK)
        if len(cut) >= CUT and not cut.endswith("…"):
            draft.content = cut
    return len(draft.content) <= room + SLACK


def _says_too(one: _Draft, other: _Draft) -> bool:
    """Whether a draft says what another does, by its words."""
    told = bool(other.about) and other.about in one.content and other.worth < RULE
    return told or _near(one.words, other.words)


def _room(turns: Sequence[TurnText], share: float, least: int, most: int) -> int:
    said = sum(len(turn.content) for turn in turns if turn.role in {"user", "assistant"})
    return min(max(int(said * share), least), most)


def _drafts(part: Slice) -> Iterator[_Draft]:
    for exchange in exchanges_of(part):
        yield from _stated(exchange)
        for turn in exchange.replies:
            if turn.role == "tool":
                yield from _word_of_the_user(turn, exchange)
            elif turn.role == "assistant" and not exchange.refuted:
                yield from _report(turn, exchange)


def _stated(exchange: Exchange) -> Iterator[_Draft]:
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
            yield _Draft(shorten(text, MAX_CONTENT), turns, rated.kind, rated.worth, about=said)


def _word_of_the_user(turn: TurnText, exchange: Exchange) -> Iterator[_Draft]:
    """The user's answer to a question, or the reason of a refusal, as a tool's trace has it."""
    status = trace_status(turn.content)
    said = turn.content.partition("\n")[2].strip()
    if status == "answered" and said:
        for answer in said.splitlines():
            yield _Draft(f"Asked and answered: {answer}", [turn], Kind.DECISION, 3.5)
    elif status == "rejected" and len(said.split()) >= 4:
        about = f" ({shorten(exchange.subject, 80)})" if exchange.subject else ""
        yield _Draft(f"The user corrected the agent{about}: {said}", [turn], Kind.PREFERENCE, 4.0)


def _report(turn: TurnText, exchange: Exchange) -> Iterator[_Draft]:
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


def _reported(turn: TurnText, exchange: Exchange, point: Point, rated: Rated, came: bool) -> _Draft:
    """`came`: it is what came of the request, under which it is told."""
    final = exchange.last is turn
    trouble = exchange.trouble if rated.kind is Kind.BUG else ""
    text = _alone(point, trouble or exchange.subject, bool(trouble))
    if came and not trouble:
        text = f"{shorten(exchange.subject, ASKED)} → {point.said}"
        text = shorten(text if exchange.subject else point.said, MAX_CONTENT)
    draft = _Draft(text, [turn], rated.kind, rated.worth + bool(trouble), about=point.said)
    draft.asked = exchange.request
    if (trouble or came) and exchange.opening:
        draft.turns.insert(0, exchange.opening)
    if final and exchange.assent:
        draft.turns.append(exchange.assent)
    if final and cues.DONE.match(point.text):
        draft.changed = _writers(exchange.replies)
    return draft


def _alone(point: Point, subject: str, always: bool = False) -> str:
    """The point so that it stands alone: under its lead, else under what was asked."""
    text = point.said
    alone = bool(paths(text)) or ("`" in text and not point.lead)
    if subject and (always or cues.LEANING.match(text) or not alone):
        text = f"{shorten(subject, ASKED)}: {text}"
    return shorten(text, MAX_CONTENT)


def _commands(turns: Iterable[TurnText]) -> list[_Draft]:
    return [
        _Draft(f"Command that checks the work here: `{one}`", [turn], Kind.SKILL, 2.0)
        for one, turn in checks_run(turns)
    ]


def _made(draft: _Draft, roots: Sequence[str], known: Sequence[str]) -> Distilled:
    named = [_whole(file, known) for file in paths(draft.content, roots)]
    named += [file for turn in draft.changed for file in _worked_on(turn, roots)]
    return Distilled(
        content=draft.content,
        kind=draft.kind,
        tags=_tags(draft.content, draft.asked),
        priority=round(min(max(0.3 + 0.115 * draft.worth, 0.05), 1.0), 3),
        files=tuple(dict.fromkeys(named))[:MAX_FILES],
        turns=tuple(dict.fromkeys(turn.id for turn in draft.turns)),
        at=draft.turns[-1].at,
    )


def _whole(file: str, known: Sequence[str]) -> str:
    """The longest path that tools were given for a file named by its end, if only one fits."""
    fits = sorted({path for path in known if path.endswith(f"/{file}")}, key=len)
    one = fits and all(fits[-1].endswith(path) for path in fits)
    return fits[-1] if one else file


def _writers(turns: Iterable[TurnText]) -> list[TurnText]:
    """The tool turns that wrote a file."""
    return [
        turn
        for turn in turns
        if turn.role == "tool"
        and (turn.tool or "").lower() in _WRITERS
        and trace_status(turn.content) == "ok"
    ]


def _worked_on(turn: TurnText, roots: Sequence[str]) -> list[str]:
    return files_of(turn, roots) if turn.role == "tool" else []


def _tags(content: str, asked: str) -> tuple[str, ...]:
    """What it names first, then the words said most often, then those of the request."""
    names = [entity.label[:64] for entity in entities_of(content)[:4]]
    sought = [word for word in _common(asked) if word not in _common(content, 40)]
    return tuple(dict.fromkeys([*names, *_common(content), *sought]))[:MAX_TAGS]


def _common(text: str, most: int = 4) -> list[str]:
    words = re.findall(r"[a-z][a-z-]{3,}", re.sub(r"`[^`]*`|\S*/\S*", " ", text.lower()))
    return [word for word, _ in Counter(w for w in words if w not in _DULL).most_common(most)]


def _distinct(memories: Iterable[tuple[set[str], Distilled]]) -> list[Distilled]:
    """Without near-copies by their words: of two, the weightier stays, citing both's turns."""
    kept: list[tuple[set[str], Distilled]] = []
    for words, memory in memories:
        twin = next((i for i, (seen, _) in enumerate(kept) if _near(seen, words)), None)
        if twin is None:
            kept.append((words, memory))
            continue
        seen, other = kept[twin]
        better = max(other, memory, key=lambda m: (m.priority, len(m.content)))
        turns = tuple(dict.fromkeys(other.turns + memory.turns))
        kept[twin] = (words if better is memory else seen, replace(better, turns=turns))
    return [memory for _, memory in kept]


def _near(one: AbstractSet[str], two: AbstractSet[str]) -> bool:
    shared, smaller = len(one & two), min(len(one), len(two))
    return smaller > 0 and (shared / len(one | two) >= 0.65 or shared / smaller >= 0.88)


_WRITERS = frozenset({"edit", "write", "multiedit", "notebookedit", "apply_patch", "create"})
_DULL = frozenset(
    """that this with from have when which what then than they asked
    outcome should would could there their into only also""".split()  # noqa: SIM905
)
