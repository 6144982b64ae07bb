"""Finds what an agent should know before it edits a file or runs a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from reverie.domain.access.principals import Principal
from reverie.domain.context.active_set_entries import OnDemandHit
from reverie.domain.context.next_files import TouchedFiles
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import Memory, MemoryStatus
from reverie.domain.entities.file_paths import is_same_file
from reverie.domain.retrieval.ranking_facts import NO_SUCCESSOR, list_ids
from reverie.domain.text.index_terms import expand_query_text
from reverie.runtime.observability.tracing import current_trace_id
from reverie.store.search.search import SearchFilter
from reverie.store.sessions.context import ContextStore
from reverie_services.recall.dependencies import RecallPipelineDependencies
from reverie_services.recall.pipeline.next_files import find_file_memories, predict_next_files
from reverie_services.recall.pipeline.recall import start_recall
from reverie_services.recall.pipeline.retrievers import load_model, open_retriever
from reverie_services.recall.pipeline.stage_runner import Deadline, StageOutcome, resolve
from reverie_services.recall.pipeline.state import (
    PreflowTurn,
    RecallQuestion,
    RecallRecord,
    RecallResult,
)

ACTION_KINDS = (Kind.BUG, Kind.LESSON, Kind.CONVENTION, Kind.DECISION, Kind.SPEC)
"""What may warn before an action, failures first."""
ACTION_SCORE = 0.5
ACTION_TIMEOUT_SECONDS = 0.1
"""An agent waits at most 150 ms before an edit or a command, the way to here included."""
PREDICTED_FILES = 5
MAX_FOLLOWING = 2
"""Memories of files that will likely be touched next, given before an edit."""
MAX_ON_DEMAND = 3
"""Few whole memories help more than many fragments."""
MAX_COMMANDS = 4
"""The commands of one line that are looked at."""
MAX_SUBCOMMANDS = 2
MAX_LOADED = 20
MIN_PLAIN_LETTERS = 5
"""A shorter program is often a word (`make`, `go`): it counts only as code, in backticks."""
_SEPARATORS = re.compile(r"&&|\|\||[;|\n]")
_ASSIGNMENT = re.compile(r"\w+=")
_SUBCOMMAND = re.compile(r"[a-z][\w:-]*")
# fmt: off
_WRAPPERS = frozenset((
    "sudo", "env", "time", "nohup", "exec", "uv", "uvx", "run", "npx", "python", "python3", "node",
    "bash", "sh", "poetry",
))
_HARMLESS = frozenset((
    "awk", "cat", "cd", "cut", "echo", "export", "find", "grep", "head", "jq", "less", "ls", "pwd",
    "rg", "sed", "sort", "tail", "test", "wc", "which",
))
# fmt: on


async def find_before_edit(
    contexts: ContextStore, principal: Principal, scopes: Sequence[str], turn: PreflowTurn
) -> list[OnDemandHit]:
    """What bears on the file that is to be edited, then on those that will likely follow."""
    project, path = turn.session.project, turn.query
    hits = await _find_about_file(contexts, principal, scopes, project, path)
    if project is None:
        return hits
    touched = TouchedFiles([*turn.edited, path], turn.files, turn.tests)
    files = await predict_next_files(
        contexts, principal, project, turn.session.branch, touched, PREDICTED_FILES
    )
    others = [file for file in files if not is_same_file(file.path, path)]
    known = {hit.memory.id for hit in hits}
    following = [
        OnDemandHit(item.memory, ACTION_SCORE, item.why)
        for item in await find_file_memories(contexts, principal, scopes, project, others)
        if item.memory.kind in ACTION_KINDS and item.memory.id not in known
    ]
    return [*hits, *following[:MAX_FOLLOWING]]


async def _find_about_file(
    contexts: ContextStore,
    principal: Principal,
    scopes: Sequence[str],
    project: str | None,
    path: str,
) -> list[OnDemandHit]:
    """Failures, conventions, decisions and specifications that name the file."""
    related = await contexts.find_file_memories(principal, scopes, project, [path])
    reasons = {
        item.memory.id: item.why
        for item in related
        if is_same_file(item.why.removeprefix("touches "), path)
    }
    memories = [item.memory for item in related if item.memory.id in reasons]
    return [
        OnDemandHit(memory, ACTION_SCORE, reasons[memory.id]) for memory in _sort_by_kind(memories)
    ]


async def find_before_command(
    deps: RecallPipelineDependencies, principal: Principal, scopes: Sequence[str], command: str
) -> list[OnDemandHit]:
    """Failures, conventions, decisions and specifications that name a command of the line.

    What a later memory contradicts is left out.
    """
    names = list(parse_commands(command))
    if not names:
        return []
    kinds = [kind.value for kind in ACTION_KINDS]
    search_filter = SearchFilter(scopes, [MemoryStatus.ACTIVE.value], kinds=kinds)
    query = expand_query_text(" ".join(dict.fromkeys(word for name in names for word in name)))
    question = RecallQuestion(query, search_filter, MAX_LOADED, None, 0, include_turns=False)
    seconds = deps.settings.arm_timeout
    model = (await load_model(deps, principal.tenant, seconds)).value
    opened = await open_retriever(deps, principal, question, query, model, seconds)
    retriever = opened.value
    found = await resolve(retriever.search_words(query))
    facts = await resolve(retriever.load_facts(found.docs[:MAX_LOADED]))
    loaded = await retriever.load_memories(list_ids(facts.records))
    is_outdated = facts.records["successor"] != NO_SUCCESSOR
    outdated = set(list_ids(facts.records[is_outdated]))
    named = [
        memory
        for memory in loaded.values()
        if memory.id not in outdated and any(_names_command(memory.content, name) for name in names)
    ]
    return [
        OnDemandHit(memory, ACTION_SCORE, "names this command") for memory in _sort_by_kind(named)
    ]


def record_action(
    deps: RecallPipelineDependencies,
    principal: Principal,
    turn: PreflowTurn,
    text: str,
    scopes: list[str],
    outcomes: Sequence[StageOutcome[Any]],
) -> RecallRecord:
    """What the trace of a look-up before an edit or a command will say.

    `text`: the file or the command.
    """
    kinds = [kind.value for kind in ACTION_KINDS]
    question = RecallQuestion(
        text,
        SearchFilter(scopes, [MemoryStatus.ACTIVE.value], kinds),
        limit=MAX_ON_DEMAND,
        budget_tokens=turn.budget_tokens,
        depth=0,
        include_turns=False,
        agent=turn.session.agent,
    )
    state = start_recall(question, Deadline(monotonic(), ACTION_TIMEOUT_SECONDS))
    state = replace(state, report=state.report.with_outcomes(*outcomes))
    milliseconds = max(state.report.milliseconds.values(), default=0.0)
    return RecallRecord(
        new_id(),
        current_trace_id(),
        state.now,
        principal,
        turn.session.id,
        question,
        RecallResult((), (), 0, state),
        milliseconds,
        deps.settings.fusion,
        before=turn.before,
    )


def parse_commands(line: str) -> Iterator[tuple[str, ...]]:
    """Yields the program and subcommands of each command of a line: `("git", "push")`.

    Programs that run others are left out, and commands that only look.
    """
    for part in _SEPARATORS.split(line)[:MAX_COMMANDS]:
        words = [word for word in part.split() if not _ASSIGNMENT.match(word)]
        while words and (words[0] in _WRAPPERS or words[0].startswith("-")):
            words.pop(0)
        if not words or words[0] in _HARMLESS:
            continue
        name = [words[0].rpartition("/")[2]]
        for word in words[1 : MAX_SUBCOMMANDS + 1]:
            if not _SUBCOMMAND.fullmatch(word):
                break
            name.append(word)
        if name[0]:
            yield tuple(name)


def _names_command(text: str, name: tuple[str, ...]) -> bool:
    """Whether a text names the program with its first subcommand, or a program that has none."""
    plain = r"\s+".join(re.escape(word) for word in name[:2])
    if len(name) == 1 and len(name[0]) < MIN_PLAIN_LETTERS:
        return re.search(rf"`{plain}(?![\w.-])[^`]*`", text) is not None
    return re.search(rf"(?<![\w.-]){plain}(?![\w-])", text) is not None


def _sort_by_kind(memories: Iterable[Memory]) -> list[Memory]:
    wanted = [memory for memory in memories if memory.kind in ACTION_KINDS]
    return sorted(wanted, key=lambda memory: ACTION_KINDS.index(memory.kind))
