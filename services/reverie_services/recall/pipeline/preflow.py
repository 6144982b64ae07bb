"""Prepares what an agent should know before a turn and has not received yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.context.active_set import (
    ActiveMemorySet,
    ActiveSetEntry,
    ActiveSetLayer,
    ActiveSetSelection,
    RenderedActiveSet,
    render_active_set,
    select_entries,
)
from reverie.domain.context.active_set_entries import (
    WHOLE_CHARS,
    OnDemandHit,
    build_on_demand_entries,
    build_recent_entries,
    build_resident_entries,
)
from reverie.domain.context.line_candidates import ContextInput
from reverie.domain.context.open_files import FileRelatedMemory
from reverie.domain.core.memory import Memory, is_title_only
from reverie.domain.redaction.redactor import redact
from reverie.domain.retrieval.question_parsing import (
    ParsedQuestion,
    extract_keywords,
    extract_query,
    parse_question,
)
from reverie.domain.text.snippets import best_snippet
from reverie_services.recall.dependencies import RecallDependencies, RecallPipelineDependencies
from reverie_services.recall.pipeline.action_warnings import (
    ACTION_TIMEOUT_SECONDS,
    MAX_ON_DEMAND,
    find_before_command,
    find_before_edit,
    record_action,
)
from reverie_services.recall.pipeline.linked_projects import explain_hit, recall_turn
from reverie_services.recall.pipeline.next_files import NOT_ABOUT_FILES
from reverie_services.recall.pipeline.recall_trace import build_trace
from reverie_services.recall.pipeline.stage_runner import StageOutcome, run_stage
from reverie_services.recall.pipeline.state import (
    PreflowOutcome,
    PreflowTurn,
    RecallRecord,
    RecallResult,
)
from reverie_services.recall.pipeline.visible_scopes import resolve_scopes

MAX_OPEN_FILE = 2
OPEN_FILE_SCORE = 0.5
"""The score of a memory that is there for an open file."""
MIN_SCORE_SHARE = 0.5
"""Hits with less than this share of the best hit's score are left out."""
SNIPPET_CHARS = 800
ACTION_CHARS = 600
"""Before an edit or a command, a memory is given whole up to this length."""
MAX_PER_KIND = 10
"""The most recent memories of each kind that may enter the set."""
RECALL_GRACE_SECONDS = 0.5
"""A recall has a deadline of its own; after this much more it is given up."""
MAX_UPDATE_ATTEMPTS = 5
"""The number of retries if concurrent turns of the session stored their set first."""


@dataclass(frozen=True)
class PreflowResult:
    """The rendered block, its selection, and the analysis of the question."""

    rendered: RenderedActiveSet
    selection: ActiveSetSelection
    seen_ids: Sequence[UUID]
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
    hits: Sequence[OnDemandHit]
    held_back: Sequence[PreflowOutcome]
    degraded: frozenset[str]
    record: RecallRecord | None = None


@dataclass(frozen=True)
class _Choice:
    """What a turn may receive by layer, and what is relevant but was given before."""

    candidates: dict[ActiveSetLayer, list[ActiveSetEntry]]
    seen: list[ActiveSetEntry]
    held_back: list[PreflowOutcome]


async def run_preflow(
    deps: RecallDependencies, principal: Principal, turn: PreflowTurn
) -> PreflowResult:
    """Builds the block of a turn. `degraded` names the parts that failed."""
    now, text = datetime.now(UTC), redact(extract_query(turn.query)).text
    parsed_question = parse_question(text, now)
    scopes = resolve_scopes(principal, turn.scopes, turn.session)
    load = _load_inputs if turn.before is None else _load_action_inputs
    inputs = await load(deps, principal, turn, text, scopes)
    default_budgets = deps.pipeline.settings.active_set_budgets
    budgets = (
        default_budgets.scale_to(turn.budget_tokens) if turn.budget_tokens else default_budgets
    )
    query_keywords = extract_keywords(text, parsed_question)
    count_tokens = deps.pipeline.model_manager.counter.count
    choice = _choose_candidates(inputs, turn, now, query_keywords)
    selection = select_entries(choice.candidates, budgets, count_tokens)
    stored = await _store_selection(deps, principal, turn, inputs, selection, choice.seen)
    shown_entries = selection.entries if turn.resend_all else stored.new_entries
    rendered = render_active_set(shown_entries, count_tokens)
    if inputs.record is not None:
        deliveries = _list_deliveries(rendered, choice, inputs.held_back)
        record = replace(inputs.record, deliveries=deliveries, layers=selection.usage())
        deps.pipeline.trace_writer.add(principal.tenant, partial(build_trace, record))
    return PreflowResult(
        rendered=rendered,
        selection=selection,
        seen_ids=[entry.id for entry in choice.seen],
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
        seen_ids=(),
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
    timeout, recall_timeout = settings.arm_timeout, settings.timeout + RECALL_GRACE_SECONDS
    recalling = partial(recall_turn, deps, principal, turn, text, scopes)
    find_files = partial(
        deps.contexts.find_file_memories, principal, scopes, session.project, turn.files
    )
    no_record: RecallRecord | None = None
    no_memories: list[FileRelatedMemory] = []
    active_set, briefing, recalled, file_memories = await asyncio.gather(
        run_stage(
            "set",
            timeout,
            partial(deps.active_memory_sets.get, principal, session.id),
            ActiveMemorySet(),
        ),
        run_stage(
            "briefing",
            timeout,
            partial(deps.contexts.load, principal, scopes, per_kind=MAX_PER_KIND),
            ContextInput(),
        ),
        run_stage("recall", recall_timeout, recalling if text else None, no_record),
        run_stage("files", timeout, find_files if turn.files else None, no_memories),
    )
    outcomes: tuple[StageOutcome[Any], ...] = (active_set, briefing, recalled, file_memories)
    failed = {outcome.name for outcome in outcomes if outcome.failed}
    result = recalled.value.result if recalled.value else None
    threshold = settings.relevance_threshold
    hits, held_back = _filter_hits(result, file_memories.value, threshold, session.scope)
    return _PreflowInputs(
        active_set.value,
        briefing.value,
        hits,
        held_back,
        frozenset(failed.union(result.degraded if result else ())),
        recalled.value,
    )


async def _load_action_inputs(
    deps: RecallDependencies, principal: Principal, turn: PreflowTurn, text: str, scopes: list[str]
) -> _PreflowInputs:
    """Reads what bears on the file that is to be edited, or on the command that is to be run."""
    timeout = min(deps.pipeline.settings.arm_timeout, ACTION_TIMEOUT_SECONDS)
    if turn.before == "edit":
        search = partial(find_before_edit, deps.contexts, principal, scopes, turn)
    else:
        search = partial(find_before_command, deps.pipeline, principal, scopes, text)
    no_hits: list[OnDemandHit] = []
    active_set, hits = await asyncio.gather(
        run_stage(
            "set",
            timeout,
            partial(deps.active_memory_sets.get, principal, turn.session.id),
            ActiveMemorySet(),
        ),
        run_stage("files" if turn.before == "edit" else "words", timeout, search, no_hits),
    )
    outcomes: tuple[StageOutcome[Any], ...] = (active_set, hits)
    failed = frozenset(outcome.name for outcome in outcomes if outcome.failed)
    record = None
    if hits.value:
        record = record_action(deps.pipeline, principal, turn, text, scopes, outcomes)
    return _PreflowInputs(active_set.value, ContextInput(), hits.value, (), failed, record)


def _filter_hits(
    result: RecallResult | None,
    file_memories: Sequence[FileRelatedMemory],
    threshold: float,
    home: str,
) -> tuple[list[OnDemandHit], list[PreflowOutcome]]:
    """Relevant hits of the question and memories for the open files, alternating; and the others.

    For a memory that is both, the open file is the reason.
    """
    reasons = {entry.memory.id: entry.why for entry in file_memories}
    hits: list[OnDemandHit] = []
    held_back: list[PreflowOutcome] = []
    best_score = 0.0
    successors = result.state.successors if result else {}
    for hit in result.hits if result else ():
        if not isinstance(hit.item, Memory):
            continue
        score = hit.scored.score
        if hit.relevance is not None and hit.relevance < threshold:
            held_back.append(PreflowOutcome(hit.item.id, "relevance", round(hit.relevance, 3)))
            continue
        best_score = max(best_score, score)
        if score < MIN_SCORE_SHARE * best_score:
            held_back.append(PreflowOutcome(hit.item.id, "score", hit.relevance))
        else:
            reason = reasons.get(hit.item.id) or explain_hit(hit, home)
            hits.append(
                OnDemandHit(hit.item, score, reason, hit.relevance, successors.get(hit.item.id))
            )
    of_files = [
        OnDemandHit(entry.memory, OPEN_FILE_SCORE, entry.why)
        for entry in file_memories
        if entry.memory.kind not in NOT_ABOUT_FILES
    ][:MAX_OPEN_FILE]
    pairs = zip_longest(hits, of_files)
    return [hit for pair in pairs for hit in pair if hit is not None], held_back


def _choose_candidates(
    inputs: _PreflowInputs, turn: PreflowTurn, now: datetime, query_keywords: Sequence[str]
) -> _Choice:
    """Chooses the new memories of a turn.

    Summaries and recent memories come once, and of themselves answer no message: they come with
    the first memory that does, or after a compaction. More of them would only be noise.
    """
    active_set = inputs.active_set.after_compaction() if turn.compacted else inputs.active_set
    make_snippet = partial(best_snippet, words=" ".join(query_keywords), size=SNIPPET_CHARS)
    entries = build_on_demand_entries(
        inputs.hits, make_snippet, ACTION_CHARS if turn.before else WHOLE_CHARS
    )
    seen = [entry for entry in entries if not (turn.resend_all or active_set.is_missing(entry))]
    seen_ids = {entry.id for entry in seen}
    new = [entry for entry in entries if entry.id not in seen_ids]
    held_back = [
        PreflowOutcome(entry.id, outcome, entry.relevance, entry.layer.value)
        for outcome, entries in (("already_given", seen), ("limit", new[MAX_ON_DEMAND:]))
        for entry in entries
    ]
    candidates = {ActiveSetLayer.ON_DEMAND: new[:MAX_ON_DEMAND]}
    opens_session = turn.resend_all or turn.compacted or (active_set.is_unused and entries)
    if opens_session and turn.before is None:
        briefing = inputs.briefing
        done_ids = {task_id for task_id, state in briefing.task_states.items() if state == "done"}
        current = {
            memory.id: memory
            for memory in (*briefing.memories, *briefing.stale)
            if memory.id not in done_ids and not is_title_only(memory.content)
        }
        candidates[ActiveSetLayer.RESIDENT] = build_resident_entries(
            turn.session.id, briefing.summaries, turn.session.scope
        )
        candidates[ActiveSetLayer.RECENT] = build_recent_entries(current.values(), now)
    return _Choice(candidates, seen, held_back)


def _list_deliveries(
    rendered: RenderedActiveSet, choice: _Choice, held_back: Sequence[PreflowOutcome]
) -> list[PreflowOutcome]:
    """What was given, then what was held back and why; each memory once."""
    given = [
        PreflowOutcome(entry.id, "given", entry.relevance, entry.layer.value)
        for entry in rendered.entries
        if entry.memory
    ]
    known_ids = {delivery.id for delivery in (*given, *choice.held_back)}
    over_budget = [
        PreflowOutcome(entry.id, "budget", entry.relevance, entry.layer.value)
        for layer in (ActiveSetLayer.ON_DEMAND, ActiveSetLayer.RECENT)
        for entry in choice.candidates.get(layer, ())
        if entry.id not in known_ids
    ]
    everything = [*given, *choice.held_back, *over_budget, *held_back]
    return list({delivery.id: delivery for delivery in reversed(everything)}.values())[::-1]


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
    seen: Sequence[ActiveSetEntry],
) -> _StoredSelection:
    """Stores the selection as delivered, before it is answered.

    Where another turn of the session stored its own first, only what that one lacked is new.
    """
    session, timeout = turn.session.id, deps.pipeline.settings.arm_timeout
    active_set, degraded = inputs.active_set, inputs.degraded
    begins_turn = turn.before is None
    for _ in range(MAX_UPDATE_ATTEMPTS):
        base = active_set.after_compaction() if turn.compacted else active_set
        new_entries = selection.missing_from(base)
        is_unused = base.is_unused and not selection.entries
        if "set" in degraded or is_unused or (turn.before and not new_entries):
            return _StoredSelection(new_entries, active_set.turn + begins_turn, degraded)
        updated = base.with_entries([*selection.entries, *seen], begins_turn=begins_turn)
        stored = await run_stage(
            "set", timeout, partial(deps.active_memory_sets.put, principal, session, updated), True
        )
        if stored.value:
            failed = degraded | {"set"} if stored.failed else degraded
            return _StoredSelection(new_entries, updated.turn, failed)
        newer = await run_stage(
            "set", timeout, partial(deps.active_memory_sets.get, principal, session), active_set
        )
        active_set = newer.value
        degraded = degraded | {"set"} if newer.failed else degraded
    new_entries = selection.missing_from(
        active_set.after_compaction() if turn.compacted else active_set
    )
    return _StoredSelection(new_entries, active_set.turn + begins_turn, degraded | {"set"})
