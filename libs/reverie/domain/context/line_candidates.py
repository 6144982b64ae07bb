"""The lines that compete for a place in the context block, in order of priority."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from reverie.domain.context.budgets import DEFAULT_BUDGETS, BudgetSection, ContextBudgets
from reverie.domain.context.open_files import FileRelatedMemory
from reverie.domain.context.text_rendering import (
    LINE_CHARS,
    flatten_text,
    render_age,
    render_line,
)
from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import Memory, is_title_only

SESSION_CHARS = 2000
TASK_MARKS = {"todo": "○", "doing": "→", "blocked": "⊘", "done": "✓"}
"""Marks of the states of a task. Of the done ones, only the latest are in the block."""
LESSON_TOKENS = 24
"""The tokens that a lesson leaves for each older one, so that each has at least a beginning."""

IDENTITY_HEADING = "Identity"
SESSION_HEADING = "Previous session"
COMMAND_TAGS = ("command", "commands", "cmd")

_COMMAND_KINDS = frozenset({Kind.CONVENTION, Kind.CONTEXT, Kind.REFERENCE})
_COMMAND_KEY = re.compile(r"(?:commands?|cmd)(?:[:./_-].*)?")
_COMMAND_TEXT = re.compile(
    r"^\s*(?:build|tests?|lint|format|type-?check|run|start|deploy|install|migrate|bench)"
    r"(?: commands?)?\s*[:=]"
    r"|`(?:\$ )?(?:make|just|npm|pnpm|yarn|bun|npx|uv|pip|poetry|pytest|tox|ruff|mypy|cargo|go"
    r"|mvn|gradle|\./gradlew|bazel|docker|kubectl|helm|terraform|rake|bundle|composer|dotnet|swift"
    r"|cmake|ninja|ctest|eslint|tsc|jest|vitest|mix|sbt|pre-commit)\b[^`]*`",
    re.I,
)


@dataclass(frozen=True)
class ContextInput:
    """The memories that may be shown, each list the weightiest first; summaries are (scope, text).

    `task_states`: the state of each task; a done one is not shown, unless it is one of
    `done_tasks`: done since the last session. `now`: for the ages of decisions. `central_ids`: the
    most central memories of the graph. `file_related`: memories for the open files. `has_more`:
    older ones of the same kinds were not read. `budgets`: the project's settings. `stale_causes`:
    the files that made memories stale, a sentence each.
    """

    memories: Sequence[Memory] = ()
    stale: Sequence[Memory] = ()
    sessions: Sequence[Memory] = ()
    summaries: Sequence[tuple[str, str]] = ()
    task_states: Mapping[UUID, str] = field(default_factory=dict)
    central_ids: frozenset[UUID] = frozenset()
    file_related: Sequence[FileRelatedMemory] = ()
    has_more: bool = False
    budgets: ContextBudgets = DEFAULT_BUDGETS
    stale_causes: Sequence[str] = ()
    done_tasks: Sequence[Memory] = ()
    now: datetime | None = None


@dataclass(frozen=True)
class LinePlacement:
    """A heading and the budgets that pay for a line under it, in this order."""

    heading: str
    sections: tuple[BudgetSection, ...]


@dataclass(frozen=True)
class LineCandidate:
    """A memory that may get a line: its placements, and its texts, of which the first that fits is
    used.

    `share_count`: number of remaining candidates with equal right to the room, itself included.
    `reserved`: tokens that its whole text leaves to those after it.
    """

    memory: Memory
    placements: tuple[LinePlacement, ...]
    texts: tuple[str, ...]
    why: str | None = None
    can_shorten: bool = False
    is_required: bool = False
    share_count: int = 1
    reserved: int = 0


_HOT_SECTIONS, _WARM_SECTIONS = (BudgetSection.HOT,), (BudgetSection.WARM,)
_KIND_PLACEMENTS = {
    Kind.CONVENTION: LinePlacement("Conventions (always follow)", _HOT_SECTIONS),
    Kind.TASK: LinePlacement("Active tasks", _HOT_SECTIONS),
    Kind.PREFERENCE: LinePlacement("Preferences", _HOT_SECTIONS),
    Kind.LESSON: LinePlacement("Lessons", _WARM_SECTIONS),
    Kind.DECISION: LinePlacement("Recent decisions", _WARM_SECTIONS),
}
_IDENTITY_PLACEMENT = LinePlacement(
    IDENTITY_HEADING,
    (
        BudgetSection.HOT,
        BudgetSection.WARM,
        BudgetSection.SESSION,
        BudgetSection.STALE,
        BudgetSection.FILES,
    ),
)
_PINNED_PLACEMENT = LinePlacement("Pinned", (BudgetSection.HOT, BudgetSection.WARM))
_FILES_PLACEMENT = LinePlacement("For the open files", (BudgetSection.FILES,))
_STALE_PLACEMENT = LinePlacement("⚠ May be stale", (BudgetSection.STALE,))
_COMMANDS_PLACEMENT = LinePlacement("Commands", _HOT_SECTIONS)
_CENTRAL_PLACEMENT = LinePlacement("Much depends on these", _HOT_SECTIONS)
_HOT_PLACEMENT = LinePlacement("Always at hand", _HOT_SECTIONS)
_BACKGROUND_PLACEMENT = LinePlacement("Background", _WARM_SECTIONS)
_SESSION_PLACEMENT = LinePlacement(SESSION_HEADING, (BudgetSection.SESSION,))
_HOT_ORDER = (
    _KIND_PLACEMENTS[Kind.CONVENTION],
    _COMMANDS_PLACEMENT,
    _KIND_PLACEMENTS[Kind.TASK],
    _KIND_PLACEMENTS[Kind.PREFERENCE],
    _HOT_PLACEMENT,
)
_DONE_PLACEMENT = LinePlacement("Done since the last session", (BudgetSection.SESSION,))
_WARM_ORDER = (
    _KIND_PLACEMENTS[Kind.DECISION],
    _BACKGROUND_PLACEMENT,
)


def iter_line_candidates(context_input: ContextInput) -> Iterator[LineCandidate]:
    """Every memory once, the weightiest first; titles of sessions alone are left out."""
    emitted_ids: set[UUID] = set()
    for candidate in _iter_all_candidates(context_input):
        state = context_input.task_states.get(candidate.memory.id, "")
        is_told = candidate.memory.id in emitted_ids or is_title_only(candidate.memory.content)
        is_shown = state != "done" or candidate.placements == (_DONE_PLACEMENT,)
        if is_shown and not is_told:
            emitted_ids.add(candidate.memory.id)
            mark, age = TASK_MARKS.get(state), _render_age(candidate.memory, context_input.now)
            texts = candidate.texts
            if mark:
                texts = tuple(text.replace("] ", f"] {mark} ", 1) for text in texts)
            yield replace(candidate, texts=tuple(text + age for text in texts))


def _render_age(memory: Memory, now: datetime | None) -> str:
    """How old a decision is: a later one may stand against it."""
    if now is None or memory.kind is not Kind.DECISION:
        return ""
    return f" ({render_age((now - memory.dates_from).total_seconds())})"


def is_command_memory(memory: Memory) -> bool:
    """Returns whether a memory describes how to build, test, lint or run: by tag, key or words."""
    if set(memory.tags) & set(COMMAND_TAGS) or _COMMAND_KEY.fullmatch(memory.key or ""):
        return True
    may_be_command = memory.kind in _COMMAND_KINDS and len(memory.content) <= LINE_CHARS
    return may_be_command and bool(_COMMAND_TEXT.search(memory.content))


def render_title(memory: Memory) -> str:
    """A few words for a memory: its key, or how it begins."""
    return memory.key or flatten_text(memory.summary or memory.content, 80)


def _iter_all_candidates(context_input: ContextInput) -> Iterator[LineCandidate]:
    memories = context_input.memories
    yield from _iter_identity_candidates(memories)
    yield from _iter_lesson_candidates(memories)
    yield from (_build_candidate(item, _PINNED_PLACEMENT) for item in memories if item.pinned)
    session_ids = {item.id for item in context_input.sessions}
    file_related = [
        item for item in context_input.file_related if item.memory.id not in session_ids
    ]
    yield from (
        _build_candidate(item.memory, _FILES_PLACEMENT, with_fallback=True, why=item.why)
        for item in file_related
    )
    yield from (
        _build_candidate(item, _STALE_PLACEMENT, with_fallback=True) for item in context_input.stale
    )
    by_placement: defaultdict[LinePlacement, list[Memory]] = defaultdict(list)
    for memory in memories:
        by_placement[_choose_placement(memory, context_input.central_ids)].append(memory)
    for placement in _HOT_ORDER:
        sort_key = partial(_sort_key, context_input.central_ids)
        yield from (
            _build_candidate(item, placement)
            for item in sorted(by_placement[placement], key=sort_key)
        )
    yield from (
        _build_candidate(item, _CENTRAL_PLACEMENT, with_fallback=True)
        for item in by_placement[_CENTRAL_PLACEMENT]
    )
    for item in context_input.sessions:
        line = render_line(item, chars=SESSION_CHARS)
        yield LineCandidate(item, (_SESSION_PLACEMENT,), (line,), can_shorten=True)
    yield from (_build_candidate(item, _DONE_PLACEMENT) for item in context_input.done_tasks)
    for placement in _WARM_ORDER:
        newest = sorted(by_placement[placement], key=_recency_key, reverse=True)
        yield from (_build_candidate(item, placement) for item in newest)


def _iter_identity_candidates(memories: Sequence[Memory]) -> Iterator[LineCandidate]:
    """Yields identity candidates: the whole text if it fits, else its summary, else its beginning.

    The shortest comes first, so that none is shortened if all of them fit.
    """
    identities = (memory for memory in memories if memory.kind is Kind.IDENTITY)
    by_length = sorted(identities, key=lambda memory: len(memory.content))
    for index, memory in enumerate(by_length):
        lines = [render_line(memory, memory.content, len(memory.content))]
        if memory.summary:
            lines.append(render_line(memory))
        yield LineCandidate(
            memory,
            (_IDENTITY_PLACEMENT,),
            tuple(lines),
            can_shorten=True,
            is_required=True,
            share_count=len(by_length) - index,
        )


def _iter_lesson_candidates(memories: Sequence[Memory]) -> Iterator[LineCandidate]:
    """Yields lessons before all else that shares their budget, newest first.

    An older one gives its beginning rather than nothing.
    """
    lessons = (memory for memory in memories if memory.kind is Kind.LESSON)
    newest = sorted(lessons, key=_recency_key, reverse=True)
    for index, memory in enumerate(newest):
        yield LineCandidate(
            memory,
            (_KIND_PLACEMENTS[Kind.LESSON], *([_PINNED_PLACEMENT] if memory.pinned else [])),
            (render_line(memory),),
            can_shorten=True,
            reserved=LESSON_TOKENS * (len(newest) - index - 1),
        )


def _build_candidate(
    memory: Memory, placement: LinePlacement, with_fallback: bool = False, why: str | None = None
) -> LineCandidate:
    """A line at a place; `with_fallback`, else under the heading of its kind if it has one."""
    kind_placement = _KIND_PLACEMENTS.get(memory.kind)
    placements = (
        (placement, kind_placement)
        if with_fallback and kind_placement and kind_placement != placement
        else (placement,)
    )
    return LineCandidate(memory, placements, (render_line(memory, why=why),), why)


def _choose_placement(memory: Memory, central_ids: frozenset[UUID]) -> LinePlacement:
    if is_command_memory(memory):
        return _COMMANDS_PLACEMENT
    kind_placement = _KIND_PLACEMENTS.get(memory.kind, _BACKGROUND_PLACEMENT)
    if memory.tier is Tier.HOT and kind_placement in _WARM_ORDER:
        return _HOT_PLACEMENT
    return (
        _CENTRAL_PLACEMENT
        if memory.id in central_ids and kind_placement in _WARM_ORDER
        else kind_placement
    )


def _sort_key(central_ids: frozenset[UUID], memory: Memory) -> tuple[bool, float, float, str]:
    """Sorts by centrality in the graph, then by confidence, then newest first."""
    negative_time = -_recency_key(memory)[0].timestamp()
    return memory.id not in central_ids, -memory.confidence, negative_time, str(memory.id)


def _recency_key(memory: Memory) -> tuple[datetime, str]:
    return memory.dates_from, str(memory.id)
