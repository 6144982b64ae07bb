"""Locates the code that a memory's text refers to: files, lines and symbols at a commit.

The server holds no source code; the client locates the text and sends positions with the memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from reverie.agent.clone_paths import resolve_inside
from reverie.agent.git.definitions import Definition, find_definitions
from reverie.agent.git.repository import GitRepository
from reverie.contracts.memories.memories import GitLocation
from reverie.domain.core.errors import InvalidInput, ReverieError
from reverie.domain.entities.file_paths import extract_identifiers, extract_paths, is_same_file

MAX_NAMESAKES = 3
"""A name with at most this many definitions, or in at most this many lines, identifies a place."""
_LINE_REFERENCE = re.compile(r"(?:\blines? |:L?|#L)(\d{1,6})(?:\s?[-–]\s?L?(\d{1,6}))?\b", re.I)


@dataclass(frozen=True)
class TextLocation:
    """The definitions that a text names in a file, and further lines that it mentions."""

    symbols: tuple[Definition, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()


def find_in_source(text: str, path: str, source: bytes, is_only_file: bool = True) -> TextLocation:
    """Finds the places in a file that a text mentions.

    These are lines given by number, definitions that it names, else the few lines that contain a
    name. `is_only_file`: the text names no other file, so its line numbers are of this one.
    """
    names = extract_identifiers(text)
    symbols = _innermost_definitions(_select_definitions(find_definitions(path, source), names))
    remaining_names = names - {definition.name for definition in symbols}
    source_lines = source.decode(errors="replace").splitlines()
    lines = _numbered_lines(text, path, is_only_file, len(source_lines))
    if not symbols and not lines:
        lines = _lines_with_names(source_lines, remaining_names)
    return TextLocation(tuple(symbols), tuple(lines))


def locate_text(
    repo: GitRepository, text: str, files: Iterable[str] = (), revision: str | None = None
) -> GitLocation:
    """Locates the code that a text mentions in a clone.

    Reads a commit, else the checked-out files with uncommitted edits. Files that the text names are
    also found by the end of their path. Raises `NotFound`.
    """
    commit = repo.resolve_commit(revision or "HEAD", "at")
    file_paths = _resolve_paths([*files, *extract_paths(text)], _list_files(repo, commit))
    location: dict[str, Any] = {
        "commit": commit,
        "committed_at": repo.run_text("show", "-s", "--format=%cI", commit),
        "branch": repo.current_branch if revision is None else None,
        "files": file_paths,
        "lines": {},
        "symbols": {},
        "blobs": {},
    }
    for path in file_paths:
        source = _read_source(repo, commit, path, from_worktree=revision is None)
        if source is None:
            continue
        location["blobs"][path] = source[0]
        match = find_in_source(text, path, source[1], is_only_file=len(file_paths) == 1)
        if match.lines:
            location["lines"][path] = [list(span) for span in match.lines]
        if match.symbols:
            location["symbols"][path] = [
                {"name": definition.name, "lines": [definition.first_line, definition.last_line]}
                for definition in match.symbols
            ]
    return GitLocation.model_validate(
        {name: value for name, value in location.items() if value}, strict=False
    )


def locate_when_learned(repo: GitRepository, unanchored: Mapping[str, Any]) -> GitLocation | None:
    """Locates a memory of `GET /v1/git/anchors` in the last commit before it was learned.

    Returns None if the memory has no place there.
    """
    try:
        commit = repo.last_commit_before(datetime.fromisoformat(unanchored["created_at"]), "HEAD")
        location = (
            locate_text(repo, unanchored["content"], unanchored["files"], commit)
            if commit
            else None
        )
    except ReverieError:
        return None
    return location if location and location.blobs else None


def build_anchor_updates(
    locations: Iterable[tuple[Mapping[str, Any], GitLocation | None]],
) -> list[dict[str, Any]]:
    """Builds the anchor updates for the memories that have a place."""
    return [
        {"memory": memory["memory"], "git": location.model_dump(mode="json", exclude_defaults=True)}
        for memory, location in locations
        if location is not None
    ]


@lru_cache(maxsize=64)
def _list_files(repo: GitRepository, commit: str) -> tuple[str, ...]:
    return tuple(repo.run_text("ls-tree", "-r", "--name-only", "-z", commit).split("\0"))


def _read_source(
    repo: GitRepository, commit: str, path: str, from_worktree: bool
) -> tuple[str, bytes] | None:
    """Returns git's name of a file's content and the content; nothing for a missing file."""
    file = _worktree_file(repo, path) if from_worktree else None
    if file is not None:
        content = file.read_bytes()
        return repo.run_text("hash-object", "--", path), content
    output = repo.run("rev-parse", "-q", "--verify", f"{commit}:{path}", exit_codes=(0, 1, 128))
    blob_id = output.decode().strip()
    return (blob_id, repo.run("cat-file", "blob", blob_id)) if blob_id else None


def _worktree_file(repo: GitRepository, path: str) -> Path | None:
    """The checked-out file; None if it is missing, or lies behind a link."""
    try:
        file = resolve_inside(repo.root, Path(path))
    except InvalidInput:
        return None
    return file if file.is_file() else None


def _resolve_paths(names: Sequence[str], known_paths: Sequence[str]) -> list[str]:
    """The files of the commit that the names mean, each name if it means one alone."""
    by_file_name: defaultdict[str, list[str]] = defaultdict(list)
    for path in known_paths:
        by_file_name[path.rpartition("/")[2]].append(path)
    resolved: dict[str, None] = {}
    for name in names:
        plain = name.removeprefix("./")
        candidates = by_file_name[plain.rpartition("/")[2]]
        matches = (
            [plain]
            if plain in candidates
            else [path for path in candidates if is_same_file(plain, path)]
        )
        if len(matches) == 1:
            resolved[matches[0]] = None
    return list(resolved)


def _select_definitions(
    candidates: Sequence[Definition], names: frozenset[str]
) -> list[Definition]:
    by_name: defaultdict[str, list[Definition]] = defaultdict(list)
    for definition in candidates:
        if definition.name in names:
            by_name[definition.name].append(definition)
    return [
        definition
        for group in by_name.values()
        if len(group) <= MAX_NAMESAKES
        for definition in group
    ]


def _innermost_definitions(candidates: Sequence[Definition]) -> list[Definition]:
    """Drops definitions that enclose another named one: of `Store.load`, only the method stays."""
    return [
        definition
        for definition in sorted(
            set(candidates), key=lambda item: (item.first_line, item.last_line, item.name)
        )
        if not any(
            definition != other
            and definition.first_line <= other.first_line
            and other.last_line <= definition.last_line
            for other in candidates
        )
    ]


def _numbered_lines(
    text: str, path: str, is_only_file: bool, line_count: int
) -> list[tuple[int, int]]:
    """Finds the lines that the text gives by number, if the numbers are of this file."""
    name = path.rpartition("/")[2]
    spans = []
    for match in _LINE_REFERENCE.finditer(text):
        is_this_file = (
            is_only_file
            if match[0].lower().startswith("line")
            else text[: match.start()].endswith(name)
        )
        first, end = int(match[1]), int(match[2] or match[1])
        if is_this_file and 0 < first <= end <= line_count:
            spans.append((first, end))
    return list(dict.fromkeys(spans))


def _lines_with_names(source_lines: Sequence[str], names: Iterable[str]) -> list[tuple[int, int]]:
    """Finds the lines that contain a name, if the name occurs in few lines."""
    spans: set[tuple[int, int]] = set()
    for name in names:
        pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        lines = [
            number
            for number, line in enumerate(source_lines, 1)
            if name in line and pattern.search(line)
        ]
        if len(lines) <= MAX_NAMESAKES:
            spans |= {(number, number) for number in lines}
    return sorted(spans)
