"""Prepares what an agent should know before a turn and has not received yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
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
from reverie.domain.retrieval.keywords import extract_keywords, extract_query
from reverie.domain.retrieval.question_parsing import ParsedQuestion, parse_question
from reverie.domain.text.snippets import best_snippet
from reverie.store.memories.memories import VISIBLE_STATUSES
from reverie.store.search.search import SearchFilter
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.recall.dependencies import RecallDependencies
from reverie_services.recall.pipeline.recall_result import RecallQuestion, RecallResult
from reverie_services.recall.pipeline.recall_trace import recall_with_trace
from reverie_services.recall.pipeline.retrievers import StageRunner
from reverie_services.recall.pipeline.visible_scopes import resolve_scopes

MAX_HITS = 2 * MAX_PER_SCOPE
OPEN_FILE_SCORE = 0.5
"""What a memory that the open files call for is taken to be worth."""
MIN_SCORE_SHARE = 0.25
"""What has less than this share of the best hit's score is too far from the question for a turn."""
MAX_PER_KIND = 10
"""How many memories of a kind are looked at for what to keep in mind, the newest."""
RECALL_GRACE_SECONDS = 0.5
"""A recall keeps its time by itself; what waits for a place as long is given up."""
MAX_UPDATE_ATTEMPTS = 5
"""How often a set is stored anew when other turns of its session are faster."""


@dataclass(frozen=True)
class PreflowTurn:
    """A turn that begins: whose, what is said, with which files open, within how many tokens."""

    session: SessionRecord
    query: str
    files: Sequence[str] = ()
    budget_tokens: int | None = None
    compacted: bool = False
    resend_all: bool = False


@dataclass(frozen=True)
class PreflowResult:
    """What the turn begins with: the block, the whole set it is from, and how that came about."""

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

    @property
    def degraded(self) -> set[str]:
        return set(self.recall_result.degraded) if self.recall_result else set()

    def iterate_hits(self) -> Iterator[tuple[Memory, float, str]]:
        """What the question found and what the open files call for, by turns, with the reasons.

        Of what is both, the open file is the reason.
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
    """Never raises because a part of it failed; `degraded` names what could not be asked."""
    now, text = datetime.now(UTC), redact(extract_query(turn.query)).text
    parsed_question, scopes, stages = (
        parse_question(text, now),
        resolve_scopes(principal, None, turn.session),
        StageRunner(),
    )
    inputs = await _load_inputs(deps, principal, turn, text, scopes, stages)
    settings = deps.settings.active_set_budgets
    budgets = settings.scale_to(turn.budget_tokens) if turn.budget_tokens else settings
    query_keywords = extract_keywords(text, parsed_question)
    count_tokens = deps.model_manager.counter.count
    selection = select_entries(
        _build_candidates(inputs, turn.session, now, query_keywords), budgets, count_tokens
    )
    new_entries, turn_number = await _store_selection(
        deps, principal, turn, inputs.active_set, selection, stages
    )
    shown_entries = selection.entries if turn.resend_all else new_entries
    return PreflowResult(
        rendered=render_active_set(shown_entries, count_tokens),
        selection=selection,
        new_ids=frozenset(entry.id for entry in new_entries),
        turn_number=turn_number,
        scopes=scopes,
        keywords=query_keywords,
        parsed_question=parsed_question,
        degraded=sorted({*stages.degraded, *inputs.degraded}),
    )


def build_empty_preflow(
    deps: RecallDependencies, query: str, budget_tokens: int | None, missing: list[str]
) -> PreflowResult:
    """What a turn begins with whose session cannot be looked up now."""
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
    deps: RecallDependencies,
    principal: Principal,
    turn: PreflowTurn,
    text: str,
    scopes: list[str],
    stages: StageRunner,
) -> _PreflowInputs:
    """All that is read, side by side and in time."""
    timeout = deps.settings.arm_timeout
    recall_timeout = deps.settings.timeout + RECALL_GRACE_SECONDS
    question = _build_question(turn, text, scopes)
    no_result: RecallResult | None = None
    no_memories: list[FileRelatedMemory] = []
    return _PreflowInputs(
        *await asyncio.gather(
            stages.run(
                "set",
                timeout,
                deps.active_memory_sets.get(principal, turn.session.id),
                ActiveMemorySet(),
            ),
            stages.run(
                "briefing",
                timeout,
                deps.contexts.load(principal, scopes, per_kind=MAX_PER_KIND),
                ContextInput(),
            ),
            stages.run(
                "recall",
                recall_timeout,
                recall_with_trace(deps, principal, question, turn.session.id) if text else None,
                no_result,
            ),
            stages.run(
                "files",
                timeout,
                deps.contexts.find_file_memories(
                    principal, scopes, turn.session.project, turn.files
                )
                if turn.files
                else None,
                no_memories,
            ),
        )
    )


def _build_question(turn: PreflowTurn, text: str, scopes: list[str]) -> RecallQuestion:
    return RecallQuestion(
        text,
        SearchFilter(scopes, list(VISIBLE_STATUSES)),
        limit=min(MAX_PER_SCOPE * len(scopes), MAX_HITS),
        budget_tokens=None,
        depth=2,
        include_turns=False,
        agent=turn.session.agent,
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


async def _store_selection(
    deps: RecallDependencies,
    principal: Principal,
    turn: PreflowTurn,
    active_set: ActiveMemorySet,
    selection: ActiveSetSelection,
    stages: StageRunner,
) -> tuple[list[ActiveSetEntry], int]:
    """What the session lacks of the chosen, stored as given before it is answered.

    Where another turn of the session was faster, less what that one gives.
    """
    session, timeout = turn.session.id, deps.settings.arm_timeout
    for _ in range(MAX_UPDATE_ATTEMPTS):
        if "set" in stages.degraded:
            break
        base = active_set.after_compaction() if turn.compacted else active_set
        new_entries = selection.missing_from(base)
        updated = base.with_entries(selection.entries)
        if await stages.run(
            "set", timeout, deps.active_memory_sets.put(principal, session, updated), True
        ):
            return new_entries, updated.turn
        active_set = await stages.run(
            "set", timeout, deps.active_memory_sets.get(principal, session), active_set
        )
    else:
        stages.degraded.append("set")
    return selection.missing_from(
        active_set.after_compaction() if turn.compacted else active_set
    ), active_set.turn + 1
