"""Rule-based extraction of memories from a session, without a language model.

A topic segment is read as exchanges: a user message and the replies to it. Extracted are one
decision record for each subtopic, the user's lasting rules and preferences, and the commands that
verified the work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.recognition import extract_entities
from reverie.domain.extraction.conversation.exchanges import split_exchanges
from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment
from reverie.domain.extraction.conversation.work_log import (
    MAX_FILES,
    WorkLog,
    collect_work_log,
    find_last_writes,
    find_place_of_work,
    find_related_files,
    find_verification_commands,
    select_write_turns,
)
from reverie.domain.extraction.records.answer_records import build_answer_records
from reverie.domain.extraction.records.decision_records import DecisionRecord
from reverie.domain.extraction.records.record_builder import build_record, settles
from reverie.domain.extraction.records.record_statements import (
    RULES,
    RecordStatement,
    is_near_duplicate,
)
from reverie.domain.extraction.records.subtopics import (
    annotate_exchanges,
    find_problem,
    is_order,
    split_subtopics,
)
from reverie.domain.extraction.wording.salience import MIN_SALIENCE
from reverie.domain.text.characters import word_set
from reverie.domain.text.index_terms import index_text
from reverie.domain.text.turns import TurnText

MAX_SESSION_CHARS, MAX_TITLE_CHARS = 1_600, 200
MIN_SESSION_LINES = 2
MIN_TITLE_WORDS = 9
"""A shorter order, such as "Look at the workflows.", does not say what a session is about."""
MAX_MEMORIES = 40
MIN_CONTENT_BYTES = 24
"""Least size in bytes: eight Chinese characters contain as much as a few English words."""
MAX_TAGS = 12
MAX_COPY_WORDS = 6
"""Words in which a record and a statement that say the same differ at most."""

_STOP_WORDS = word_set(
    """that this with from have when which what then than they asked
    outcome should would could there their into only also"""
)


@dataclass(frozen=True)
class ExtractedMemory:
    """A memory made from turns. `priority` is 0 to 1; `at` is the time when it became true.

    `produced_by`: `rules`, or the prompt with its version and the model that wrote it.
    `file_writes`: which of the files the session had written by then, each with the time.
    `record`: the parts of a decision record, as `DecisionRecord.parts` gives them; `headline`: the
    record as one line.
    """

    content: str
    kind: Kind
    tags: tuple[str, ...]
    priority: float
    files: tuple[str, ...]
    turns: tuple[UUID, ...]
    at: datetime
    produced_by: str = RULES
    file_writes: tuple[tuple[str, datetime], ...] = ()
    record: Mapping[str, Any] | None = None
    headline: str = ""


@dataclass(frozen=True)
class TopicReading:
    """What a topic holds: its decision records, and the statements that are memories alone."""

    records: Sequence[DecisionRecord]
    lasting: Sequence[RecordStatement]


def read_topic(segment: TopicSegment) -> TopicReading:
    """Reads a topic by rules: a record for each subtopic that settled something.

    Of talk that settled nothing, the answers are kept.
    """
    stated = annotate_exchanges(segment)
    is_work = any(turn.role == "tool" for item in stated for turn in item.exchange.replies)
    records: list[DecisionRecord] = []
    for subtopic in split_subtopics(stated):
        if is_work or settles(subtopic):
            record = build_record(subtopic, is_work)
            records += [record] if record else []
        else:
            records += build_answer_records(subtopic)
    records = [record for record in records if record.is_self_contained]
    alone = (s for item in stated for s in item.statements if s.is_own_memory)
    told = "\n".join(record.content for record in records)
    return TopicReading(
        records, [s for s in alone if s.kind is not Kind.SKILL or s.text not in told]
    )


def extract_memories(
    segments: Sequence[TopicSegment],
    roots: Sequence[str] = (),
    read: Callable[[TopicSegment], TopicReading] = read_topic,
) -> list[ExtractedMemory]:
    """Extracts the lasting memories of a session's topics, in order of time, without near-copies.

    A decision record for each subtopic, the user's lasting rules and preferences, and the commands
    that verified the work. Returns at most `MAX_MEMORIES`; the less important are left out.
    `roots` are the workspace folders that absolute paths are relative to. `read` tells what a topic
    holds.
    """
    work_log = collect_work_log((turn for segment in segments for turn in segment.turns), roots)

    def build(
        content: str,
        kind: Kind,
        turns: Sequence[TurnText],
        score: float,
        writes: Sequence[TurnText],
        request: str = "",
    ) -> ExtractedMemory:
        return _build_memory(content, kind, turns, score, writes, work_log, roots, request)

    memories: list[ExtractedMemory] = []
    for reading in map(read, segments):
        for record in reading.records:
            writes = select_write_turns(t for e in record.exchanges for t in e.replies)
            memory = build(
                record.content, record.kind, record.turns, record.score, writes, record.problem
            )
            memories.append(
                replace(
                    memory,
                    record=record.parts,
                    headline=record.headline,
                    files=tuple(dict.fromkeys((*memory.files, *record.files)))[:MAX_FILES],
                    tags=tuple(dict.fromkeys((*memory.tags, *record.names)))[:MAX_TAGS],
                    produced_by=record.produced_by,
                )
            )
        memories += [
            replace(build(s.text, s.kind, [s.turn], s.score, ()), produced_by=s.produced_by)
            for s in reading.lasting
        ]
    all_turns = [turn for segment in segments for turn in segment.turns]
    place = find_place_of_work(work_log)
    if commands := find_verification_commands(all_turns, place):
        listed = ", ".join(f"`{command}`" for command, _ in commands)
        cited = sorted((turn for _, turn in commands), key=lambda turn: turn.ordinal)
        changed = f"in `{place}`" if place else "of the project"
        text = f"Checks after a change {changed}: {listed}"
        memories.append(build(text, Kind.SKILL, cited, 2.0, ()))
    return deduplicate_memories(
        memory for memory in memories if len(memory.content.encode()) >= MIN_CONTENT_BYTES
    )


def deduplicate_memories(memories: Iterable[ExtractedMemory]) -> list[ExtractedMemory]:
    """Memories of several segments, near-copies collapsed, at most `MAX_MEMORIES`."""
    unique: list[tuple[set[str], ExtractedMemory]] = []
    for memory in memories:
        words = set(index_text(memory.content).split())
        # A rule that a longer record contains stays beside it.
        copies = (
            i
            for i, (other, m) in enumerate(unique)
            if is_near_duplicate(other, words)
            and (bool(m.record) is bool(memory.record) or len(other ^ words) <= MAX_COPY_WORDS)
        )
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
    segments: Sequence[TopicSegment],
    roots: Sequence[str] = (),
    memories: Sequence[ExtractedMemory] | None = None,
) -> ExtractedMemory | None:
    """Builds a memory of a session: its first request, and what came of each subtopic.

    None for talk about a single subtopic and for mere answers: the memories say all. Of work the
    title is left, to which its memories are linked, where it is on a single subtopic, where one has
    no line, or the title only orders something. Of more lines than fit, the last ones stay:
    they say where the work stands. `memories`: those extracted from the segments.
    """
    exchanges = [e for segment in segments for e in split_exchanges(segment)]
    requests = [e for e in exchanges if e.request and e.opening]
    all_turns = [turn for segment in segments for turn in segment.turns]
    if not requests:
        return None
    opening = requests[0].opening
    assert opening is not None
    if memories is None:
        memories = extract_memories(segments, roots)
    dated_lines = [(m.at, f"- {m.headline}") for m in memories if m.headline]
    problem = find_problem(requests, MAX_TITLE_CHARS)
    is_part = any(m.record and not m.headline for m in memories)
    is_untitled = is_order(problem) and len(problem.split()) < MIN_TITLE_WORDS
    if len(dated_lines) < MIN_SESSION_LINES or is_part or is_untitled:
        if not any(turn.role == "tool" for turn in all_turns):
            return None
        dated_lines = []
    title = f"Session: {problem}"
    lines = [line for _, line in sorted(dated_lines)]
    while lines and len(title) + sum(map(len, lines)) > MAX_SESSION_CHARS:
        lines.pop(0)
    cited_ids = {turn for memory in memories if memory.record for turn in memory.turns}
    cited = [opening] + [turn for turn in all_turns if turn.id in cited_ids]
    work_log = collect_work_log(all_turns, roots)
    memory = _build_memory(
        "\n".join([title, *lines]),
        Kind.SESSION,
        list(dict.fromkeys(cited)),
        MIN_SALIENCE,
        select_write_turns(all_turns),
        work_log,
        roots,
    )
    file_writes = find_last_writes(memory.files, work_log, all_turns[-1].at)
    return replace(memory, at=opening.at, file_writes=file_writes)


def _build_memory(
    content: str,
    kind: Kind,
    turns: Sequence[TurnText],
    score: float,
    writes: Sequence[TurnText],
    work_log: WorkLog,
    roots: Sequence[str],
    request: str = "",
) -> ExtractedMemory:
    """`request`: what the user asked for, which the content need not repeat."""
    at = max(turn.at for turn in turns)
    searched = content if request in content else f"{request}\n{content}"
    files = find_related_files(searched, writes, work_log, at, roots)
    return ExtractedMemory(
        content=content,
        kind=kind,
        tags=_build_tags(searched),
        priority=round(min(max(0.3 + 0.115 * score, 0.05), 1.0), 3),
        files=files,
        turns=tuple(dict.fromkeys(turn.id for turn in turns)),
        at=at,
        file_writes=find_last_writes(files, work_log, at),
    )


def _build_tags(content: str) -> tuple[str, ...]:
    """Builds tags: names first, then the most frequent words."""
    names = [entity.label[:64] for entity in extract_entities(content)[:4]]
    return tuple(dict.fromkeys([*names, *_most_common_words(content)]))[:MAX_TAGS]


def _most_common_words(text: str) -> list[str]:
    words = re.findall(
        r"[a-z][a-z-]{3,}", re.sub(r"`[^`]*`|(?<![^\s`])[^\s/`]*+/\S*", " ", text.lower())
    )
    return [word for word, _ in Counter(w for w in words if w not in _STOP_WORDS).most_common(4)]
