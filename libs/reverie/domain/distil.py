"""What lasts of a conversation, without a language model: chosen sentences, cleaned.

A slice is read as exchanges: something the user asked, and what came of it. Kept are what
the user asked for with its outcome, what the agent reported at the end of an exchange,
causes and findings on the way, the user's answers and corrections, and the commands that
checked the work. Tool outputs, code, greetings and announcements ("let me look") are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from reverie.domain import cues
from reverie.domain.anchors import files_of, paths
from reverie.domain.classify import classify
from reverie.domain.entities import entities_of
from reverie.domain.exchanges import Exchange, exchanges_of, outcome_of, weight_of
from reverie.domain.kinds import Kind
from reverie.domain.points import Point, points
from reverie.domain.prose import shorten
from reverie.domain.requests import is_command
from reverie.domain.slices import Slice
from reverie.domain.turns import TurnText, trace_status, trace_target
from reverie.domain.words import index_text

MAX_CONTENT = 600
MIN_CONTENT = 40
MAX_SESSION = 1_500
MAX_MEMORIES = 40
MAX_TAGS = 8
MAX_FILES = 16

_BASE = {
    Kind.PREFERENCE: 0.75,
    Kind.CONVENTION: 0.75,
    Kind.DECISION: 0.7,
    Kind.BUG: 0.65,
    Kind.LESSON: 0.65,
    Kind.SPEC: 0.55,
    Kind.TASK: 0.5,
    Kind.SKILL: 0.5,
    Kind.SESSION: 0.5,
}
_REPORTED = frozenset({Kind.DECISION, Kind.BUG, Kind.LESSON, Kind.SPEC, Kind.TASK})
_CHECK = re.compile(
    r"^(?:\w+=\S+ )*(?:(?:go (?:test|build|vet|generate|mod tidy)|golangci-lint|gofmt|goreleaser"
    r"|(?:npm|pnpm|yarn|bun)(?: run)? \w+|make|just|cargo|pytest|tox|nox|ruff|mypy|uv run|eslint"
    r"|tsc"
    r"|docker compose|docker build|helm|terraform|mvn|gradle|\./gradlew|dotnet|bundle exec|rake|mix"
    r"|swift (?:build|test)|xcodebuild|bazel|ctest|cmake --build|phpunit|composer)\b)"
)


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
    """A memory in the making: `about` tells its kind, `changed` are turns that wrote files."""

    content: str
    turns: list[TurnText]
    kind: Kind | None = None
    lift: float = 0.0
    about: str = ""
    changed: list[TurnText] = field(default_factory=list)


def distil(slices: Sequence[Slice], roots: Sequence[str] = ()) -> list[Distilled]:
    """The lasting memories of a session's slices, in order of time, near-copies collapsed.

    At most `MAX_MEMORIES`, the less important left out. `roots` are the workspace folders
    that absolute paths are relative to. The same slices give the same memories.
    """
    drafts = [draft for part in slices for draft in _drafts(part)]
    drafts += _commands(turn for part in slices for turn in part.turns)
    known = [file for part in slices for turn in part.turns for file in _worked_on(turn, roots)]
    kept = _distinct(
        (set(index_text(draft.about or draft.content).split()), _made(draft, roots, known))
        for draft in drafts
        if len(draft.content) >= MIN_CONTENT
    )
    ranked = sorted(kept, key=lambda memory: -memory.priority)[:MAX_MEMORIES]
    return [memory for memory in kept if memory in ranked]


def distinct(segments: Iterable[Distilled]) -> list[Distilled]:
    """Segments of several slices, near-copies collapsed, at most `MAX_MEMORIES`."""
    kept = _distinct((set(index_text(one.content).split()), one) for one in segments)
    ranked = sorted(kept, key=lambda one: -one.priority)[:MAX_MEMORIES]
    return [one for one in kept if one in ranked]


def session_memory(slices: Sequence[Slice], roots: Sequence[str] = ()) -> Distilled | None:
    """What a session was asked and what came of it; None where nobody asked anything."""
    exchanges = [exchange for part in slices for exchange in exchanges_of(part)]
    requests = [exchange for exchange in exchanges if exchange.request]
    outcome = next(filter(None, (outcome_of(exchange) for exchange in reversed(exchanges))), None)
    if not requests or not requests[0].opening:
        return None
    told = [exchange for exchange in requests if not is_command(exchange.request)] or requests
    lines = [f"Session: {_title(requests)}"]
    lines += dict.fromkeys(_line(exchange) for exchange in told[:7])
    if outcome:
        lines.append(f"At the end: {outcome[1][0]}")
    text = shorten("\n".join(lines), MAX_SESSION)
    turns = [exchange.opening for exchange in requests if exchange.opening]
    turns += [outcome[0]] if outcome else []
    everything = [turn for part in slices for turn in part.turns]
    draft = _Draft(text, turns, Kind.SESSION, changed=[t for t in everything if _writes(t)])
    known = [file for turn in everything for file in _worked_on(turn, roots)]
    return replace(_made(draft, roots, known), at=requests[0].opening.at)


def _title(requests: list[Exchange]) -> str:
    """The first request; a slash command with the title of what it was called on."""
    first, *rest = (exchange.request for exchange in requests)
    if is_command(first) and rest and not is_command(rest[0]):
        return shorten(f"{first} ({rest[0]})", 140)
    return shorten(requests[0].subject or first, 140)


def _line(exchange: Exchange) -> str:
    outcome = outcome_of(exchange)
    came = f" → {shorten(outcome[1][0], 130)}" if outcome else ""
    return f"- {shorten(exchange.request, 150)}{came}"


def _drafts(part: Slice) -> Iterator[_Draft]:
    for exchange in exchanges_of(part):
        told = _request(exchange)
        if told:
            yield told
        for turn in exchange.replies:
            if turn.role == "tool":
                yield from _word_of_the_user(turn, exchange)
            elif turn.role == "assistant" and not exchange.refuted:
                yield from _report(turn, exchange, told)


def _request(exchange: Exchange) -> _Draft | None:
    """What the user asked, with the first thing the agent said came of it."""
    if not exchange.opening or len(exchange.request) < MIN_CONTENT // 2:
        return None
    kind = _kind_of_request(exchange.request)
    outcome = outcome_of(exchange)
    turns = [exchange.opening]
    text = shorten(exchange.request, 360)
    if outcome:
        room = MAX_CONTENT - len(text) - len("Asked: \nOutcome: ")
        text = f"Asked: {text}\nOutcome: {shorten(outcome[1][0], room)}"
        turns.append(outcome[0])
    elif kind is Kind.CONTEXT and len(text) < 2 * MIN_CONTENT:
        return None
    lift = 0.1 if cues.CORRECTION.search(exchange.request) else 0.0
    lift += 0.15 if cues.REMEMBER.search(exchange.request) else 0.0
    changed = [turn for turn in exchange.replies if _writes(turn)] if outcome else []
    return _Draft(text, turns, kind, lift, changed=changed)


def _kind_of_request(request: str) -> Kind:
    table = (
        (cues.PREFERENCE, Kind.PREFERENCE),
        (cues.REMEMBER, Kind.CONVENTION),
        (cues.CONVENTION, Kind.CONVENTION),
        (cues.DECISION, Kind.DECISION),
        (cues.CORRECTION, Kind.LESSON),
        (cues.FAILURE, Kind.BUG),
    )
    return next((kind for cue, kind in table if cue.search(request)), classify(request))


def _word_of_the_user(turn: TurnText, exchange: Exchange) -> Iterator[_Draft]:
    """The user's answer to a question, or the reason of a refusal, as a tool's trace has it."""
    status = trace_status(turn.content)
    said = turn.content.partition("\n")[2].strip()
    if status == "answered" and said:
        for answer in said.splitlines():
            yield _Draft(f"Asked and answered: {answer}", [turn], Kind.DECISION, 0.05)
    elif status == "rejected" and len(said.split()) >= 4:
        about = f" ({exchange.subject})" if exchange.subject else ""
        yield _Draft(f"The user corrected the agent{about}: {said}", [turn], Kind.PREFERENCE)


def _report(turn: TurnText, exchange: Exchange, told: _Draft | None) -> Iterator[_Draft]:
    final = exchange.last is turn
    for point in points(turn.content):
        if weight_of(point) < (1 if final else 3):
            continue
        if told and point.said[:200] in told.content:
            told.turns.append(turn)
            continue
        lift = 0.05 * weight_of(point) - 0.1
        draft = _Draft(_alone(point, exchange.subject), [turn], None, lift, about=point.said)
        if final and exchange.assent:
            draft.turns.append(exchange.assent)
            draft.lift += 0.1
        yield draft


def _alone(point: Point, subject: str) -> str:
    """The point so that it stands alone: under its lead, else under what was asked."""
    text = point.said
    alone = bool(paths(text)) or ("`" in text and not point.lead)
    if subject and (cues.LEANING.match(text) or not alone):
        text = f"{shorten(subject, 90)}: {text}"
    return shorten(text, MAX_CONTENT)


def _commands(turns: Iterable[TurnText]) -> list[_Draft]:
    """The commands that built, tested or released with success, the frequent ones first."""
    used: dict[str, list[TurnText]] = {}
    for turn in turns:
        if turn.role != "tool" or trace_status(turn.content) != "ok":
            continue
        for command in re.split(r"\s+&&\s+|;\s+", trace_target(turn.content)):
            clean = re.split(r"\s+(?:2>|>|\|)", command)[0].strip()
            if _CHECK.match(clean) and len(clean) <= 80 and "…" not in clean:
                used.setdefault(clean, []).append(turn)
    best = sorted(used, key=lambda command: -len(used[command]))[:6]
    if not best:
        return []
    listed = ", ".join(f"`{command}`" for command in best)
    cited = [used[command][-1] for command in best]
    return [_Draft(f"Commands that checked the work and passed: {listed}", cited, Kind.SKILL)]


def _made(draft: _Draft, roots: Sequence[str], known: Sequence[str]) -> Distilled:
    kind = draft.kind or _kind_of_report(draft.about or draft.content)
    named = [_whole(file, known) for file in paths(draft.content, roots)]
    named += [file for turn in draft.changed for file in _worked_on(turn, roots)]
    files = tuple(dict.fromkeys(named))[:MAX_FILES]
    reason = 0.05 if cues.CAUSE.search(draft.content) else 0.0
    priority = _BASE.get(kind, 0.4) + draft.lift + reason + (0.05 if files else 0.0)
    return Distilled(
        content=draft.content,
        kind=kind,
        tags=_tags(draft.content),
        priority=round(min(max(priority, 0.05), 1.0), 3),
        files=files,
        turns=tuple(dict.fromkeys(turn.id for turn in draft.turns)),
        at=draft.turns[-1].at,
    )


def _kind_of_report(text: str) -> Kind:
    """What an agent reports: rules and wishes are the user's to state, advice is no decision."""
    kind = classify(re.sub(r"`[^`]*`", " ", text))
    if kind not in _REPORTED or (kind is not Kind.BUG and cues.SUGGESTION.search(text)):
        return Kind.CONTEXT
    return kind


def _whole(file: str, known: Sequence[str]) -> str:
    """The longest path that tools were given for a file named by its end, if only one fits."""
    fits = sorted({path for path in known if path.endswith(f"/{file}")}, key=len)
    one = fits and all(fits[-1].endswith(path) for path in fits)
    return fits[-1] if one else file


def _writes(turn: TurnText) -> bool:
    wrote = turn.role == "tool" and (turn.tool or "").lower() in _WRITERS
    return wrote and trace_status(turn.content) == "ok"


def _worked_on(turn: TurnText, roots: Sequence[str]) -> list[str]:
    return files_of(turn, roots) if turn.role == "tool" else []


def _tags(content: str) -> tuple[str, ...]:
    """What it names first, then the words said most often."""
    names = [entity.label[:64] for entity in entities_of(content)[:4]]
    words = re.findall(r"[a-z][a-z-]{3,}", re.sub(r"`[^`]*`|\S*/\S*", " ", content.lower()))
    common = [word for word, _ in Counter(w for w in words if w not in _DULL).most_common(4)]
    return tuple(dict.fromkeys(names + common))[:MAX_TAGS]


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


def _near(one: set[str], two: set[str]) -> bool:
    shared, smaller = len(one & two), min(len(one), len(two))
    return smaller > 0 and (shared / len(one | two) >= 0.65 or shared / smaller >= 0.88)


_WRITERS = frozenset({"edit", "write", "multiedit", "notebookedit", "apply_patch", "create"})
_DULL = frozenset(
    {
        "that",
        "this",
        "with",
        "from",
        "have",
        "when",
        "which",
        "what",
        "then",
        "than",
        "they",
        "asked",
        "outcome",
        "should",
        "would",
        "could",
        "there",
        "their",
        "into",
        "only",
        "also",
    }
)
