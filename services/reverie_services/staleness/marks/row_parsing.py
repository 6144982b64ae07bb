"""Parses stored anchors and file changes into the values of the staleness rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from reverie.domain.access.scopes import branch_of_scope, slugify
from reverie.domain.entities.file_paths import extract_identifiers
from reverie.domain.staleness.file_changes import (
    ChangeCommit,
    ChangedFile,
    FileAnchor,
    FileChangeStep,
    FileEdit,
    LineMove,
)
from reverie.domain.staleness.line_ranges import LineRange
from reverie.store.staleness.stale_marks import FileHistoryStep, TouchingMemory

_LINES = TypeAdapter(list[tuple[int, int]])
_SYMBOLS = TypeAdapter(list[tuple[str, int, int]])
_MOMENT: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)


def parse_anchor(touching: TouchingMemory, path: str) -> FileAnchor:
    """Parses the anchor of a memory in the file that is now at `path`.

    Edge metadata may be malformed, because any writer may send it; malformed parts are ignored.
    """
    meta = touching.meta
    stored_path = meta.get("named") or meta.get("path")
    since = _parse_or_none(_MOMENT, meta.get("since"))
    git = touching.git or {}
    committed_at = _parse_or_none(_MOMENT, git.get("committed_at"))
    written_at = _parse_or_none(_MOMENT, meta.get("modified_at"))
    known_at = committed_at or touching.known_at
    line_ranges = _parse_line_ranges(meta)
    return FileAnchor(
        memory=touching.memory,
        path=stored_path if isinstance(stored_path, str) else path,
        known_at=since or max(known_at, written_at or known_at),
        ranges=line_ranges,
        identifiers=frozenset() if line_ranges else extract_identifiers(touching.content),
        blob=meta["blob"] if isinstance(meta.get("blob"), str) else None,
        confirmed_at=touching.checked,
        written_at=written_at,
        known_by_clock=not (since or committed_at or written_at or git.get("commit")),
    )


def _parse_line_ranges(meta: dict[str, Any]) -> tuple[LineRange, ...]:
    lines = _parse_or_none(_LINES, meta.get("lines")) or []
    symbols = _parse_or_none(_SYMBOLS, meta.get("symbols")) or []
    symbol_ranges = tuple(LineRange(first, last, name) for name, first, last in symbols)
    return (*symbol_ranges, *(LineRange(first, last) for first, last in lines if 0 < first <= last))


def concerns_memory(
    touching: TouchingMemory, step: FileHistoryStep, merges: Mapping[str, frozenset[UUID]]
) -> bool:
    """Whether a change can concern a memory.

    Changes on a branch concern the memories of the branch, and changes on the main line all others.
    A promoted memory is concerned by both, but not by the merge that promoted it. `merges`: the
    stored changes that led to a commit.
    """
    branch = branch_of_scope(touching.scope)
    if branch is not None:
        return slugify(step.branch) == branch
    promoted = touching.promoted
    if promoted is None:
        return step.main
    if slugify(step.branch) == promoted.branch:
        return True
    is_own_merge = step.event == promoted.event or step.event in merges.get(promoted.commit, ())
    return step.main and not is_own_merge


def parse_step(record: FileHistoryStep) -> FileChangeStep:
    """Parses a stored change of a file. It was validated when it came, and is not validated again:
    it is read a thousand times as often."""
    facts = record.facts
    commit = ChangeCommit(
        facts.get("commit") or "",
        facts.get("subject") or "",
        datetime.fromisoformat(facts["committed_at"]),
        facts.get("reverts"),
    )
    file = parse_changed_file(facts)
    return FileChangeStep(file, commit, record.known_at, record.event, record.latest)


def parse_changed_file(facts: dict[str, Any]) -> ChangedFile:
    """A file's change as it is stored."""
    return ChangedFile(
        path=facts["path"],
        status=facts["status"],
        old_path=facts.get("old_path"),
        edits=tuple(_parse_edit(hunk) for hunk in facts.get("hunks", ())),
        moved=tuple(_parse_moved(entry) for entry in facts.get("moved", ())),
        removed_symbols=frozenset(
            entry["name"] for entry in facts.get("symbols", ()) if entry["change"] == "removed"
        ),
        is_truncated=facts.get("truncated", False),
        may_exist_elsewhere=facts.get("possible_path") is not None,
        old_blob=facts.get("old_blob"),
        new_blob=facts.get("new_blob"),
    )


def _parse_edit(hunk: Any) -> FileEdit:
    """A hunk may be stored as its four numbers."""
    if isinstance(hunk, list):
        return FileEdit((hunk[0], hunk[1], hunk[2], hunk[3]))
    line_range = (hunk["old_start"], hunk["old_lines"], hunk["new_start"], hunk["new_lines"])
    names = frozenset(hunk.get("symbols", ())), frozenset(hunk.get("identifiers", ()))
    return FileEdit(line_range, hunk.get("kind"), *names)


def _parse_moved(entry: dict[str, Any]) -> LineMove:
    last = entry["old_start"] + entry["lines"] - 1
    similarity = entry.get("similarity", 1.0)
    return LineMove(entry["old_start"], last, entry["path"], entry["new_start"], similarity)


def _parse_or_none(adapter: TypeAdapter[Any], raw_value: object) -> Any:
    with suppress(ValidationError):
        return adapter.validate_python(raw_value)
    return None
