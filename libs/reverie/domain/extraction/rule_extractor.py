"""Rule-based extraction of memories from a session, without a language model.

A topic segment is read as exchanges: a user message and the replies to it. Extracted are the
user's rules, preferences, choices and facts; causes, changes and behaviour that the agent
reported; answers and corrections; and the commands that verified the work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.recognition import extract_entities
from reverie.domain.extraction.candidates import (
    ExtractionCandidate,
    compute_char_budget,
    is_near_duplicate,
    select_candidates,
)
from reverie.domain.extraction.exchanges import (
    Exchange,
    find_outcome,
    is_slash_command,
    split_exchanges,
)
from reverie.domain.extraction.salience import MIN_SALIENCE
from reverie.domain.extraction.topic_segmentation import TopicSegment
from reverie.domain.extraction.work_log import (
    WorkLog,
    collect_work_log,
    find_last_writes,
    find_related_files,
    select_write_turns,
)
from reverie.domain.text.characters import word_set
from reverie.domain.text.index_terms import index_text
from reverie.domain.text.markdown import shorten
from reverie.domain.text.turns import TurnText

MIN_LINE_CHARS, MAX_TITLE_CHARS = 40, 54


def build_session_lines(
    requests: list[Exchange], max_chars: int
) -> tuple[list[str], list[TurnText]]:
    """The lines of a session's memory within `max_chars` characters, and the turns they cite."""
    lines = [f"Session: {_build_title(requests)}"]
    cited = [requests[0].opening] if requests[0].opening else []
    described = [
        exchange for exchange in requests if not is_slash_command(exchange.request)
    ] or requests
    remaining = max_chars - len(lines[0])
    lines_by_index: dict[int, str] = {}
    # The last exchange gives the outcome and is always included; the first gives the subject.
    for index in dict.fromkeys([len(described) - 1, 0, *reversed(range(len(described)))]):
        if lines_by_index and remaining < MIN_LINE_CHARS:
            break
        line, turns = _build_exchange_line(described[index], lines[0])
        if not lines_by_index and remaining >= MIN_LINE_CHARS:
            line = shorten(line, remaining)
        if line and line not in lines_by_index.values() and len(line) <= remaining:
            lines_by_index[index] = line
            cited += turns
            remaining -= len(line)
    return [*lines, *(lines_by_index[index] for index in sorted(lines_by_index))], list(
        dict.fromkeys(cited)
    )


def _build_title(requests: list[Exchange]) -> str:
    """The first request; a slash command with the title of what it was called on."""
    first, *rest = (exchange.request for exchange in requests)
    if is_slash_command(first) and rest and not is_slash_command(rest[0]):
        return shorten(f"{first} ({rest[0]})", 100)
    return shorten(requests[0].subject or first, MAX_TITLE_CHARS)


def _build_exchange_line(exchange: Exchange, title: str) -> tuple[str, list[TurnText]]:
    """Renders the request, unless the title contains it, and its outcome."""
    subject = shorten(exchange.subject or exchange.request, 110)
    request_text = "" if subject[:40] in title else subject
    outcome = find_outcome(exchange)
    outcome_text = f"→ {shorten(outcome[1][0], 160)}" if outcome else ""
    turns = [turn for turn in (exchange.opening, outcome[0] if outcome else None) if turn]
    text = " ".join(filter(None, (request_text, outcome_text)))
    return (f"- {text}" if text else ""), turns


MAX_SESSION_CHARS = 1_600
MAX_MEMORIES = 40
MAX_TAGS = 12
SESSION_SHARE, MIN_SESSION_CHARS = 0.04, 55
"""Limits of the session's own memory: a share of its characters, and characters per topic."""

_STOP_WORDS = word_set(
    """that this with from have when which what then than they asked
    outcome should would could there their into only also"""
)


@dataclass(frozen=True)
class ExtractedMemory:
    """A memory made from turns. `priority` is 0 to 1; `at` is the time when it became true.

    `produced_by`: the prompt with its version and the model that worded it; empty for rules.
    `find_last_writes`: returns which of the files the session had written by then, each with the
    time.
    """

    content: str
    kind: Kind
    tags: tuple[str, ...]
    priority: float
    files: tuple[str, ...]
    turns: tuple[UUID, ...]
    at: datetime
    produced_by: str = ""
    file_writes: tuple[tuple[str, datetime], ...] = ()


def extract_memories(
    segments: Sequence[TopicSegment], roots: Sequence[str] = ()
) -> list[ExtractedMemory]:
    """Extracts the lasting memories of a session's slices, in order of time, without near-copies.

    Returns at most `MAX_MEMORIES`; the less important are left out. `roots` are the workspace
    folders that absolute paths are relative to. The same slices give the same memories.
    """
    work_log = collect_work_log((turn for segment in segments for turn in segment.turns), roots)
    return deduplicate_memories(
        _build_memory(candidate, roots, work_log)
        for segment in segments
        for candidate in select_candidates(segment)
    )


def deduplicate_memories(memories: Iterable[ExtractedMemory]) -> list[ExtractedMemory]:
    """Segments of several slices, near-copies collapsed, at most `MAX_MEMORIES`."""
    unique: list[tuple[set[str], ExtractedMemory]] = []
    for memory in memories:
        words = set(index_text(memory.content).split())
        copies = (i for i, (other, _) in enumerate(unique) if is_near_duplicate(other, words))
        index = next(copies, None)
        if index is None:
            unique.append((words, memory))
            continue
        # The weightier one stays, and cites the turns of both.
        other_words, other = unique[index]
        better = max(other, memory, key=lambda m: (m.priority, len(m.content)))
        turns = tuple(dict.fromkeys(other.turns + memory.turns))
        unique[index] = (words if better is memory else other_words, replace(better, turns=turns))
    remaining = [memory for _, memory in unique]
    ranked = sorted(remaining, key=lambda memory: -memory.priority)[:MAX_MEMORIES]
    return [memory for memory in remaining if memory in ranked]


def build_session_memory(
    segments: Sequence[TopicSegment], roots: Sequence[str] = ()
) -> ExtractedMemory | None:
    """Builds a memory of a session's requests and outcomes; None if there was no request."""
    exchanges = [exchange for segment in segments for exchange in split_exchanges(segment)]
    requests = [exchange for exchange in exchanges if exchange.request]
    if not requests or not requests[0].opening:
        return None
    all_turns = [turn for segment in segments for turn in segment.turns]
    max_chars = compute_char_budget(
        all_turns, SESSION_SHARE, MIN_SESSION_CHARS * len(segments), MAX_SESSION_CHARS
    )
    lines, cited = build_session_lines(requests, max_chars)
    candidate = ExtractionCandidate(
        "\n".join(lines),
        cited,
        Kind.SESSION,
        MIN_SALIENCE,
        write_turns=select_write_turns(all_turns),
    )
    work_log = collect_work_log(all_turns, roots)
    memory = _build_memory(candidate, roots, work_log)
    file_writes = find_last_writes(memory.files, work_log, all_turns[-1].at)
    return replace(memory, at=requests[0].opening.at, file_writes=file_writes)


def _build_memory(
    candidate: ExtractionCandidate, roots: Sequence[str], work_log: WorkLog
) -> ExtractedMemory:
    at = max(turn.at for turn in candidate.turns)
    files = find_related_files(candidate.content, candidate.write_turns, work_log, at, roots)
    return ExtractedMemory(
        content=candidate.content,
        kind=candidate.kind,
        tags=_build_tags(candidate.content, candidate.request),
        priority=round(min(max(0.3 + 0.115 * candidate.score, 0.05), 1.0), 3),
        files=files,
        turns=tuple(dict.fromkeys(turn.id for turn in candidate.turns)),
        at=at,
        file_writes=find_last_writes(files, work_log, at),
    )


def _build_tags(content: str, request: str) -> tuple[str, ...]:
    """Builds tags: names first, then the most frequent words, then those of the request."""
    names = [entity.label[:64] for entity in extract_entities(content)[:4]]
    request_words = [
        word for word in _most_common_words(request) if word not in _most_common_words(content, 40)
    ]
    return tuple(dict.fromkeys([*names, *_most_common_words(content), *request_words]))[:MAX_TAGS]


def _most_common_words(text: str, limit: int = 4) -> list[str]:
    words = re.findall(r"[a-z][a-z-]{3,}", re.sub(r"`[^`]*`|\S*/\S*", " ", text.lower()))
    return [
        word for word, _ in Counter(w for w in words if w not in _STOP_WORDS).most_common(limit)
    ]
