"""What a context block may show, and in which order each memory asks for its line. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from reverie.domain.budgets import DEFAULT, Budgets, Part
from reverie.domain.fence import harmless
from reverie.domain.ids import short_id
from reverie.domain.kinds import Kind
from reverie.domain.memory import Memory
from reverie.domain.open_files import Near

Count = Callable[[str], int]
LINE_CHARS = 400
SESSION_CHARS = 2000
REASON_CHARS = 200
LEAST_WORDS = 6
MARKS = {"todo": "○", "doing": "→", "blocked": "⊘"}
"""How far a task is. A done one, ✓, has left the block."""

IDENTITY = "Identity"
SESSION = "Previous session"
COMMAND_TAGS = ("command", "commands", "cmd")

_COMMAND_KINDS = frozenset({Kind.CONVENTION, Kind.CONTEXT, Kind.REFERENCE})
_COMMAND_KEY = re.compile(r"(?:commands?|cmd)(?:[:./_-].*)?")
_COMMAND = re.compile(
    r"^\s*(?:build|tests?|lint|format|type-?check|run|start|deploy|install|migrate|bench)"
    r"(?: commands?)?\s*[:=]"
    r"|`(?:\$ )?(?:make|just|npm|pnpm|yarn|bun|npx|uv|pip|poetry|pytest|tox|ruff|mypy|cargo|go"
    r"|mvn|gradle|\./gradlew|bazel|docker|kubectl|helm|terraform|rake|bundle|composer|dotnet|swift"
    r"|cmake|ninja|ctest|eslint|tsc|jest|vitest|mix|sbt|pre-commit)\b[^`]*`",
    re.I,
)


@dataclass(frozen=True)
class Briefing:
    """What may be shown, each list the weightiest first; summaries are (scope, text).

    `tasks`: the state of each task; a done one is not shown. `leaned`: what the graph leans on
    most. `near`: what the open files need. `more`: there are older ones of the same kinds that
    were not read. `budgets`: what the project has set. `causes`: which files made memories
    doubtful, a sentence each.
    """

    memories: Sequence[Memory] = ()
    stale: Sequence[Memory] = ()
    sessions: Sequence[Memory] = ()
    summaries: Sequence[tuple[str, str]] = ()
    tasks: Mapping[UUID, str] = field(default_factory=dict)
    leaned: frozenset[UUID] = frozenset()
    near: Sequence[Near] = ()
    more: bool = False
    budgets: Budgets = DEFAULT
    causes: Sequence[str] = ()


@dataclass(frozen=True)
class Place:
    """A heading and the budgets that pay for a line under it, in this order."""

    heading: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Wish:
    """A memory that asks for a line: where, in which words, the first that fit.

    `sharers`: how many that are still to come have the same right to the room, itself included.
    """

    memory: Memory
    places: tuple[Place, ...]
    texts: tuple[str, ...]
    why: str | None = None
    shortens: bool = False
    never_dropped: bool = False
    sharers: int = 1

    def ways(self) -> Iterator[tuple[Place, str]]:
        """Each place with each of the texts."""
        return ((place, text) for place in self.places for text in self.texts)


_HOT, _WARM = (Part.HOT,), (Part.WARM,)
_PLACES = {
    Kind.CONVENTION: Place("Conventions (always follow)", _HOT),
    Kind.TASK: Place("Active tasks", _HOT),
    Kind.PREFERENCE: Place("Preferences", _HOT),
    Kind.LESSON: Place("Lessons", _WARM),
    Kind.DECISION: Place("Recent decisions", _WARM),
}
_IDENTITY = Place(IDENTITY, (Part.HOT, Part.WARM, Part.SESSION, Part.STALE, Part.FILES))
_PINNED = Place("Pinned", (Part.HOT, Part.WARM))
_FILES = Place("For the open files", (Part.FILES,))
_STALE = Place("⚠ May be stale", (Part.STALE,))
_COMMANDS = Place("Commands", _HOT)
_LEANED = Place("Much depends on these", _HOT)
_BACKGROUND = Place("Background", _WARM)
_SESSION = Place(SESSION, (Part.SESSION,))
_HOT_ORDER = (_PLACES[Kind.CONVENTION], _COMMANDS, _PLACES[Kind.TASK], _PLACES[Kind.PREFERENCE])
_WARM_ORDER = (_PLACES[Kind.LESSON], _PLACES[Kind.DECISION], _BACKGROUND)


def wishes(briefing: Briefing) -> Iterator[Wish]:
    """Every memory once, the weightiest first."""
    seen: set[UUID] = set()
    for wish in _all(briefing):
        state = briefing.tasks.get(wish.memory.id, "")
        if wish.memory.id not in seen and state != "done":
            seen.add(wish.memory.id)
            yield _marked(wish, state)


def is_command(memory: Memory) -> bool:
    """Whether a memory says how to build, test, lint or run: by tag, key or words."""
    if set(memory.tags) & set(COMMAND_TAGS) or _COMMAND_KEY.fullmatch(memory.key or ""):
        return True
    short = memory.kind in _COMMAND_KINDS and len(memory.content) <= LINE_CHARS
    return short and bool(_COMMAND.search(memory.content))


def line(memory: Memory, why: str | None = None) -> str:
    """Where a memory is from, what it says, why it is shown, why it is in doubt where it is."""
    return _said(memory, memory.summary or memory.content, LINE_CHARS, why)


def title(memory: Memory) -> str:
    """A few words for a memory: its key, or how it begins."""
    return memory.key or flat(memory.summary or memory.content, 80)


def flat(text: str, chars: int) -> str:
    """The text on one line, cut at a word, unable to end the fence."""
    one = harmless(" ".join(text.split()))
    if len(one) <= chars:
        return one
    return one[:chars].rsplit(" ", 1)[0] + " …"


def shortened(text: str, tokens: int, count: Count) -> str:
    """The first words of a line that fit, at least its source and a few."""
    words = text.split(" ")
    if len(words) <= LEAST_WORDS:
        return text
    while len(words) > LEAST_WORDS and count(" ".join(words) + " …") > tokens:
        words = words[: max(len(words) * 9 // 10, LEAST_WORDS)]
    return " ".join(words) + " …"


def _all(briefing: Briefing) -> Iterator[Wish]:
    memories = briefing.memories
    yield from _identities(memories)
    yield from (_wish(one, _PINNED) for one in memories if one.pinned)
    before = {one.id for one in briefing.sessions}
    near = [one for one in briefing.near if one.memory.id not in before]
    yield from (_wish(one.memory, _FILES, own=True, why=one.why) for one in near)
    yield from (_wish(one, _STALE, own=True) for one in briefing.stale)
    by_place = _by_place(memories, briefing.leaned)
    for place in _HOT_ORDER:
        weight = partial(_weight, briefing.leaned)
        yield from (_wish(one, place) for one in sorted(by_place.get(place, ()), key=weight))
    yield from (_wish(one, _LEANED, own=True) for one in by_place.get(_LEANED, ()))
    yield from (_session(one) for one in briefing.sessions)
    for place in _WARM_ORDER:
        newest = sorted(by_place.get(place, ()), key=_since, reverse=True)
        yield from (_wish(one, place) for one in newest)


def _identities(memories: Sequence[Memory]) -> Iterator[Wish]:
    """Whole where it fits, else its summary, else the beginning of that; the shortest first, so
    that none is shortened where all of them fit."""
    own = (one for one in memories if one.kind is Kind.IDENTITY)
    found = sorted(own, key=lambda one: len(one.content))
    for n, one in enumerate(found):
        whole = _said(one, one.content, len(one.content))
        texts = [whole, _said(one, one.summary, LINE_CHARS)] if one.summary else [whole]
        yield Wish(
            one,
            (_IDENTITY,),
            tuple(texts),
            shortens=True,
            never_dropped=True,
            sharers=len(found) - n,
        )


def _session(memory: Memory) -> Wish:
    said = _said(memory, memory.summary or memory.content, SESSION_CHARS)
    return Wish(memory, (_SESSION,), (said,), shortens=True)


def _wish(memory: Memory, place: Place, own: bool = False, why: str | None = None) -> Wish:
    """A line at a place; with `own`, else under the heading of its kind, where that has one."""
    kind = _PLACES.get(memory.kind)
    places = (place, kind) if own and kind and kind != place else (place,)
    return Wish(memory, places, (line(memory, why),), why)


def _by_place(memories: Iterable[Memory], leaned: frozenset[UUID]) -> dict[Place, list[Memory]]:
    found: dict[Place, list[Memory]] = {}
    for one in memories:
        found.setdefault(_place(one, leaned), []).append(one)
    return found


def _place(memory: Memory, leaned: frozenset[UUID]) -> Place:
    if is_command(memory):
        return _COMMANDS
    own = _PLACES.get(memory.kind, _BACKGROUND)
    return _LEANED if memory.id in leaned and own in _WARM_ORDER else own


def _weight(leaned: frozenset[UUID], memory: Memory) -> tuple[bool, float, float, str]:
    """What the graph leans on first, then the surest, then the newest."""
    newest = -_since(memory)[0].timestamp()
    return memory.id not in leaned, -memory.confidence, newest, str(memory.id)


def _since(memory: Memory) -> tuple[datetime, str]:
    return memory.valid_from or memory.created_at, str(memory.id)


def _marked(wish: Wish, state: str) -> Wish:
    """A task's line with the mark of its state after its source."""
    mark = MARKS.get(state)
    if mark is None:
        return wish
    return replace(wish, texts=tuple(one.replace("] ", f"] {mark} ", 1) for one in wish.texts))


def _said(memory: Memory, text: str, chars: int, why: str | None = None) -> str:
    source = f"[{memory.scope} {short_id(memory.id)}]"
    told = why is None or why.removeprefix("touches ") in text
    reason = "" if told else f" — {flat(why or '', REASON_CHARS)}"
    doubt = ""
    if memory.stale_grade:
        doubt = f" (⚠ {memory.stale_grade}: {flat(memory.stale_reason or '', REASON_CHARS)})"
    return f"- {source} {flat(text, chars)}{reason}{doubt}"
