"""Builds the announced file changes of a diff: hunks, symbol changes and moved lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from reverie.agent.git.diff import DiffEntry, RawHunk
from reverie.agent.git.hunk_analysis import (
    classify_hunk,
    find_header_symbol,
    find_identifiers,
    find_symbols,
)
from reverie.agent.git.moved_lines import MovedLineRun, find_moved_lines
from reverie.agent.git.repository import GitRepository
from reverie.contracts.base import RepoPath
from reverie.contracts.memories.git import MAX_HUNK_TEXT, MAX_IDENTIFIERS

MAX_DETAILED_HUNKS: Final = 1000
"""Limit per file. A file with more is reported without its lines."""
MAX_FILE_DETAILS: Final = 1000
"""Definitions of a file, and runs of its lines that moved."""
_MAX_HEADER_CHARS: Final = 500
_PATH_ADAPTER: Final = TypeAdapter(RepoPath)

JsonDocument = dict[str, Any]
BlameFunction = Callable[[Sequence[str]], str]
"""The commit that touched a file of one of these paths."""


def build_file_changes(
    repo: GitRepository, entries: Sequence[DiffEntry], blame: BlameFunction
) -> list[JsonDocument]:
    """Builds the changed files in the form of `FileChange`."""
    valid_entries = [
        entry
        for entry in entries
        if is_valid_path(entry.path) and is_valid_path(entry.old_path or entry.path)
    ]
    moved, defining_files = find_moved_lines(valid_entries), _index_definitions(valid_entries)
    return [
        _build_file_change(repo, entry, blame, moved, defining_files) for entry in valid_entries
    ]


def is_valid_path(path: str) -> bool:
    """Whether a path may be sent: git accepts names that an announcement does not."""
    try:
        _PATH_ADAPTER.validate_python(path)
    except ValidationError:
        return False
    return True


def _build_file_change(
    repo: GitRepository,
    entry: DiffEntry,
    blame: BlameFunction,
    moved: Sequence[MovedLineRun],
    defining_files: Mapping[str, set[str]],
) -> JsonDocument:
    old = entry.old_path or entry.path
    document: JsonDocument = {
        "path": entry.path,
        "status": entry.status,
        "commit": blame([entry.path, old]),
        "old_blob": entry.old_blob,
        "new_blob": entry.new_blob,
    }
    if entry.old_path:
        document |= {"old_path": entry.old_path, "similarity": entry.similarity}
    if not entry.is_text:
        return {**document, "binary": True}
    if len(entry.hunks) > MAX_DETAILED_HUNKS:
        return {**document, "truncated": True}
    if entry.status != "added":
        document["hunks"] = [_encode_hunk(entry.path, hunk) for hunk in entry.hunks]
        document["symbols"] = _symbol_changes(repo, entry, defining_files)
    if entry.status not in {"added", "copied"}:
        document["moved"] = [_encode_moved_lines(run) for run in moved if run.old_path == old][
            :MAX_FILE_DETAILS
        ]
    return document


def _encode_moved_lines(run: MovedLineRun) -> JsonDocument:
    return {
        "old_start": run.old_start,
        "lines": run.lines,
        "path": run.path,
        "new_start": run.new_start,
        "similarity": round(run.similarity, 3),
    }


def _encode_hunk(path: str, hunk: RawHunk) -> JsonDocument:
    fields = ("old_start", "old_lines", "new_start", "new_lines")
    document: JsonDocument = dict(zip(fields, hunk.line_ranges, strict=True))
    document["kind"] = classify_hunk(path, hunk.removed, hunk.added)
    if hunk.header:
        document["header"] = hunk.header[:_MAX_HEADER_CHARS]
    lines = [*(f"-{line}" for line in hunk.removed), *(f"+{line}" for line in hunk.added)]
    document["text"] = "\n".join(lines)[:MAX_HUNK_TEXT]
    enclosing = _enclosing_symbol(path, hunk)
    changed = find_symbols(path, [*hunk.removed, *hunk.added])
    document["symbols"] = list(dict.fromkeys([*([enclosing] if enclosing else []), *changed]))[
        :MAX_IDENTIFIERS
    ]
    document["identifiers"] = find_identifiers(path, hunk.removed, hunk.added)[:MAX_IDENTIFIERS]
    return document


def _enclosing_symbol(path: str, hunk: RawHunk) -> str | None:
    """Returns the definition that contains a hunk.

    The hunk header names the definition before it if the hunk begins with a definition of its own.
    """
    first = next((line for line in hunk.removed or hunk.added if line.strip()), "")
    return None if find_symbols(path, [first]) else find_header_symbol(path, hunk.header)


def _index_definitions(entries: Sequence[DiffEntry]) -> dict[str, set[str]]:
    """Maps each name to the files that define it in added lines."""
    index: dict[str, set[str]] = {}
    for entry in entries:
        for hunk in entry.hunks:
            for name in find_symbols(entry.path, hunk.added):
                index.setdefault(name, set()).add(entry.path)
    return index


def _symbol_changes(
    repo: GitRepository, entry: DiffEntry, defining_files: Mapping[str, set[str]]
) -> list[JsonDocument]:
    """Lists the changes of definitions in the changed lines.

    A definition that may still exist is not reported as removed.
    """
    path = entry.path
    old = dict.fromkeys(
        symbol for hunk in entry.hunks for symbol in find_symbols(path, hunk.removed)
    )
    new = dict.fromkeys(symbol for hunk in entry.hunks for symbol in find_symbols(path, hunk.added))
    enclosing = dict.fromkeys(
        name for hunk in entry.hunks if (name := _enclosing_symbol(path, hunk))
    )
    missing = [name for name in old if name not in new]
    remaining = _symbols_after(repo, entry) if missing else set()
    changes: dict[str, JsonDocument] = {}
    for name in missing:
        if name in remaining:
            continue
        elsewhere = defining_files.get(name, set()) - {path}
        changes[name] = {"name": name, "change": "removed"}
        if len(elsewhere) == 1:
            changes[name] = {"name": name, "change": "moved", "path": next(iter(elsewhere))}
    for name in [*old, *enclosing]:
        changes.setdefault(name, {"name": name, "change": "modified"})
    for name in new:
        changes.setdefault(name, {"name": name, "change": "added"})
    return list(changes.values())[:MAX_FILE_DETAILS]


def _symbols_after(repo: GitRepository, entry: DiffEntry) -> set[str]:
    """Returns the symbols that the file defines after the change."""
    if entry.status == "deleted" or not entry.new_blob.strip("0"):
        return set()
    text = repo.run("cat-file", "blob", entry.new_blob).decode(errors="replace")
    lines = text.split("\n")
    return {
        symbol
        for start in range(0, len(lines), 2000)
        for symbol in find_symbols(entry.path, lines[start : start + 2000])
    }
