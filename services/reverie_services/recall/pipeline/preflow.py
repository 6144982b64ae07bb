"""Prepares what an agent should know before a turn and has not received yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.context.active_set import (
    MAX_PER_SCOPE,
    ActiveMemorySet,
    ActiveSetEntry,
    ActiveSetLayer,
    ActiveSetSelection,
    RenderedActiveSet,
    build_on_demand_entries,
    build_recent_entries,
    build_resident_entries,
    render_active_set,
    select_entries,
)
from reverie.domain.context.line_candidates import ContextInput
from reverie.domain.context.open_files import FileRelatedMemory
from reverie.domain.core.memory import Memory
from reverie.domain.redaction.redactor import redact
from reverie.domain.retrieval.question_parsing import (
    ParsedQuestion,
    extract_keywords,
    extract_query,
    parse_question,
)
from reverie.domain.text.snippets import best_snippet
from reverie.store.memories.memories import VISIBLE_STATUSES
from reverie.store.search.search import SearchFilter
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.recall.dependencies import RecallDependencies, RecallPipelineDependencies
from reverie_services.recall.pipeline.recall_trace import recall_with_trace
from reverie_services.recall.pipeline.stages import StageOutcome, run_stage
from reverie_services.recall.pipeline.state import RecallQuestion, RecallResult
from reverie_services.recall.pipeline.visible_scopes import resolve_scopes

MAX_HITS = 2 * MAX_PER_SCOPE
OPEN_FILE_SCORE = 0.5
"""The score of a memory that is there for an open file."""
MIN_SCORE_SHARE = 0.25
"""Hits with less than this share of the best hit's score are left out."""
MAX_PER_KIND = 10
"""The most recent memories of each kind that may enter the set."""
RECALL_GRACE_SECONDS = 0.5
"""A recall has a deadline of its own; after this much more it is given up."""
MAX_UPDATE_ATTEMPTS = 5
"""The number of retries if concurrent turns of the session stored their set first."""


@dataclass(frozen=True)
class PreflowTurn:
    """A turn that begins: its session, message, open files, and token budget."""

    session: SessionRecord
    query: str
    files: Sequence[str] = ()
    budget_tokens: int | None = None
    compacted: bool = False
    resend_all: bool = False


@dataclass(frozen=True)
class PreflowResult:
    """The rendered block, its selection, and the analysis of the question."""

    rendered: RenderedActiveSet
    selection: ActiveSetSelection
    new_ids: frozenset[UUID]
    turn_number: int
    scopes: list[str]
    keywords: list[str]
    parsed_question: ParsedQuestion
    degraded: list[str]


@dataclass(frozen=True)
class _PreflowInputs:
    active_set: ActiveMemorySet
    briefing: ContextInput
    recall_result: RecallResult | None
    open_file_memories: list[FileRelatedMemory]
    degraded: frozenset[str]

    def iterate_hits(self) -> Iterator[tuple[Memory, float, str]]:
        """Hits of the question and memories for the open files, alternating, with the reasons.

        For a memory that is both, the open file is the reason.
        """
        recall_hits = self.recall_result.hits if self.recall_result else []
        min_score = MIN_SCORE_SHARE * max((hit.scored.score for hit in recall_hits), default=0.0)
        open_file_reasons = {entry.memory.id: entry.why for entry in self.open_file_memories}
        hits = [
            (
                hit.item,
                hit.scored.score,
                open_file_reasons.get(
                    hit.item.id, f"found by {' and '.join(hit.scored.arm_ranks)}"
                ),
            )
            for hit in recall_hits
            if isinstance(hit.item, Memory) and hit.scored.score >= min_score
        ]
        open_file_hits = [
            (entry.memory, OPEN_FILE_SCORE, entry.why) for entry in self.open_file_memories
        ]
        pairs = zip_longest(hits, open_file_hits)
        return (entry for pair in pairs for entry in pair if entry is not None)


async def run_preflow(
    deps: RecallDependencies, principal: Principal, turn: PreflowTurn
) -> PreflowResult:
    """Builds the block of a turn. `degraded` names the parts that failed."""
    now, text = datetime.now(UTC), redact(extract_query(turn.query)).text
    parsed_question = parse_question(text, now)
    scopes = resolve_scopes(principal, None, turn.session)
    inputs = await _load_inputs(deps, principal, turn, text, scopes)
    default_budgets = deps.pipeline.settings.active_set_budgets
    budgets = (
        default_budgets.scale_to(turn.budget_tokens) if turn.budget_tokens else default_budgets
    )
    query_keywords = extract_keywords(text, parsed_question)
    count_tokens = deps.pipeline.model_manager.counter.count
    selection = select_entries(
        _build_candidates(inputs, turn.session, now, query_keywords), budgets, count_tokens
    )
    stored = await _store_selection(deps, principal, turn, inputs, selection)
    shown_entries = selection.entries if turn.resend_all else stored.new_entries
    return PreflowResult(
        rendered=render_active_set(shown_entries, count_tokens),
        selection=selection,
        new_ids=frozenset(entry.id for entry in stored.new_entries),
        turn_number=stored.turn_number,
        scopes=scopes,
        keywords=query_keywords,
        parsed_question=parsed_question,
        degraded=sorted(stored.degraded),
    )


def build_empty_preflow(
    deps: RecallPipelineDependencies, query: str, budget_tokens: int | None, missing: list[str]
) -> PreflowResult:
    """The result for a turn whose session cannot be read now."""
    text, settings = extract_query(query), deps.settings.active_set_budgets
    parsed_question = parse_question(text, datetime.now(UTC))
    budgets = settings.scale_to(budget_tokens) if budget_tokens else settings
    return PreflowResult(
        rendered=RenderedActiveSet("", 0, ()),
        selection=ActiveSetSelection((), dict.fromkeys(ActiveSetLayer, 0), budgets, 0),
        new_ids=frozenset(),
        turn_number=0,
        scopes=[],
        keywords=extract_keywords(text, parsed_question),
        parsed_question=parsed_question,
        degraded=missing,
    )


async def _load_inputs(
    deps: RecallDependencies, principal: Principal, turn: PreflowTurn, text: str, scopes: list[str]
) -> _PreflowInputs:
    """Reads everything concurrently, each part within its time."""
    settings, session = deps.pipeline.settings, turn.session
    timeout = settings.arm_timeout
    question = RecallQuestion(
        text,
        SearchFilter(scopes, list(VISIBLE_STATUSES)),
        limit=min(MAX_PER_SCOPE * len(scopes), MAX_HITS),
        budget_tokens=None,
        depth=2,
        include_turns=False,
        agent=session.agent,
    )
    recalling = recall_with_trace(deps.pipeline, principal, question, session.id) if text else None
    file_search = (
        deps.contexts.find_file_memories(principal, scopes, session.project, turn.files)
        if turn.files
        else None
    )
    no_result: RecallResult | None = None
    no_memories: list[FileRelatedMemory] = []
    active_set, briefing, result, file_memories = await asyncio.gather(
        run_stage(
            "set", timeout, deps.active_memory_sets.get(principal, session.id), ActiveMemorySet()
        ),
        run_stage(
            "briefing",
            timeout,
            deps.contexts.load(principal, scopes, per_kind=MAX_PER_KIND),
            ContextInput(),
        ),
        run_stage("recall", settings.timeout + RECALL_GRACE_SECONDS, recalling, no_result),
        run_stage("files", timeout, file_search, no_memories),
    )
    outcomes: tuple[StageOutcome[Any], ...] = (active_set, briefing, result, file_memories)
    failed = {outcome.name for outcome in outcomes if outcome.failed}
    return _PreflowInputs(
        active_set.value,
        briefing.value,
        result.value,
        file_memories.value,
        frozenset(failed.union(result.value.degraded if result.value else ())),
    )


def _build_candidates(
    inputs: _PreflowInputs, session: SessionRecord, now: datetime, query_keywords: Sequence[str]
) -> dict[ActiveSetLayer, list[ActiveSetEntry]]:
    briefing = inputs.briefing
    done_ids = {task_id for task_id, state in briefing.task_states.items() if state == "done"}
    current = {
        memory.id: memory
        for memory in (*briefing.memories, *briefing.stale)
        if memory.id not in done_ids
    }
    make_snippet = partial(best_snippet, words=" ".join(query_keywords))
    return {
        ActiveSetLayer.RESIDENT: build_resident_entries(
            session.id, briefing.summaries, session.scope
        ),
        ActiveSetLayer.RECENT: build_recent_entries(current.values(), now),
        ActiveSetLayer.ON_DEMAND: build_on_demand_entries(inputs.iterate_hits(), make_snippet),
    }


@dataclass(frozen=True)
class _StoredSelection:
    new_entries: list[ActiveSetEntry]
    turn_number: int
    degraded: frozenset[str]


async def _store_selection(
    deps: RecallDependencies,
    principal: Principal,
    turn: PreflowTurn,
    inputs: _PreflowInputs,
    selection: ActiveSetSelection,
) -> _StoredSelection:
    """Stores the selection as delivered, before it is answered.

    Where another turn of the session stored its own first, only what that one lacked is new.
    """
    session, timeout = turn.session.id, deps.pipeline.settings.arm_timeout
    active_set, degraded = inputs.active_set, inputs.degraded
    for _ in range(MAX_UPDATE_ATTEMPTS):
        base = active_set.after_compaction() if turn.compacted else active_set
        new_entries = selection.missing_from(base)
        if "set" in degraded:
            return _StoredSelection(new_entries, active_set.turn + 1, degraded)
        updated = base.with_entries(selection.entries)
        stored = await run_stage(
            "set", timeout, deps.active_memory_sets.put(principal, session, updated), True
        )
        if stored.value:
            failed = degraded | {"set"} if stored.failed else degraded
            return _StoredSelection(new_entries, updated.turn, failed)
        newer = await run_stage(
            "set", timeout, deps.active_memory_sets.get(principal, session), active_set
        )
        active_set = newer.value
        degraded = degraded | {"set"} if newer.failed else degraded
    new_entries = selection.missing_from(
        active_set.after_compaction() if turn.compacted else active_set
    )
    return _StoredSelection(new_entries, active_set.turn + 1, degraded | {"set"})
