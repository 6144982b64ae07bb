"""The files of one comparison as they are announced: hunks, definitions, lines that moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from reverie.agent.git_diff import Entry, RawHunk
from reverie.agent.git_moves import Moved, moved_lines
from reverie.agent.git_repo import Repo
from reverie.agent.git_words import header_symbol, kind_of, symbols_of, words_of
from reverie.contracts.base import RepoPath
from reverie.contracts.git import MAX_SOURCE, MAX_WORDS

MOST_HUNKS: Final = 1000
"""Of a file; one with more is told without its lines."""
MOST_TOLD: Final = 1000
"""Definitions of a file, and runs of its lines that moved."""
_HEADER: Final = 500
_PATH: Final = TypeAdapter(RepoPath)

Document = dict[str, Any]
Blame = Callable[[Sequence[str]], str]
"""The commit that touched a file of one of these paths."""


def files_of(repo: Repo, entries: Sequence[Entry], blame: Blame) -> list[Document]:
    """The files that differ, as `FileChange` takes them."""
    told = [one for one in entries if _tellable(one)]
    moved, defined = moved_lines(told), _defined(told)
    return [_file(repo, entry, blame, moved, defined) for entry in told]


def _tellable(entry: Entry) -> bool:
    """Whether its paths may be told: git holds names that no announcement takes."""
    try:
        for path in (entry.path, entry.old_path or entry.path):
            _PATH.validate_python(path)
    except ValidationError:
        return False
    return True


def _file(
    repo: Repo,
    entry: Entry,
    blame: Blame,
    moved: Sequence[Moved],
    defined: Mapping[str, set[str]],
) -> Document:
    old = entry.old_path or entry.path
    found: Document = {
        "path": entry.path,
        "status": entry.status,
        "commit": blame([entry.path, old]),
        "old_blob": entry.old_blob,
        "new_blob": entry.new_blob,
    }
    if entry.old_path:
        found |= {"old_path": entry.old_path, "similarity": entry.similarity}
    if not entry.plain:
        return {**found, "binary": True}
    if len(entry.hunks) > MOST_HUNKS:
        return {**found, "cut": True}
    if entry.status != "added":
        found["hunks"] = [_hunk(entry.path, hunk) for hunk in entry.hunks]
        found["symbols"] = _symbols(repo, entry, defined)
    if entry.status not in {"added", "copied"}:
        found["moved"] = [_moved(one) for one in moved if one.old_path == old][:MOST_TOLD]
    return found


def _moved(run: Moved) -> Document:
    return {
        "old_start": run.old_start,
        "lines": run.lines,
        "path": run.path,
        "new_start": run.new_start,
        "similarity": round(run.similarity, 3),
    }


def _hunk(path: str, hunk: RawHunk) -> Document:
    names = ("old_start", "old_lines", "new_start", "new_lines")
    found: Document = dict(zip(names, hunk.place, strict=True))
    found["kind"] = kind_of(path, hunk.removed, hunk.added)
    if hunk.header:
        found["header"] = hunk.header[:_HEADER]
    lines = [*(f"-{line}" for line in hunk.removed), *(f"+{line}" for line in hunk.added)]
    found["text"] = "\n".join(lines)[:MAX_SOURCE]
    within = _within(path, hunk)
    changed = symbols_of(path, [*hunk.removed, *hunk.added])
    found["symbols"] = list(dict.fromkeys([*([within] if within else []), *changed]))[:MAX_WORDS]
    found["words"] = words_of(path, hunk.removed, hunk.added)[:MAX_WORDS]
    return found


def _within(path: str, hunk: RawHunk) -> str | None:
    """The definition that a hunk lies in: that of its header, which is only the one before where
    the hunk begins with a definition of its own."""
    first = next((line for line in hunk.removed or hunk.added if line.strip()), "")
    return None if symbols_of(path, [first]) else header_symbol(path, hunk.header)


def _defined(entries: Sequence[Entry]) -> dict[str, set[str]]:
    """By name, the files that define it in lines that were added."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        for hunk in entry.hunks:
            for name in symbols_of(entry.path, hunk.added):
                found.setdefault(name, set()).add(entry.path)
    return found


def _symbols(repo: Repo, entry: Entry, defined: Mapping[str, set[str]]) -> list[Document]:
    """What became of the definitions in the changed lines; what may still stand is not removed."""
    path = entry.path
    old = dict.fromkeys(n for hunk in entry.hunks for n in symbols_of(path, hunk.removed))
    new = dict.fromkeys(n for hunk in entry.hunks for n in symbols_of(path, hunk.added))
    within = dict.fromkeys(name for hunk in entry.hunks if (name := _within(path, hunk)))
    lost = [name for name in old if name not in new]
    standing = _standing(repo, entry) if lost else set()
    found: dict[str, Document] = {}
    for name in lost:
        if name not in standing:
            found[name] = _lost(name, defined.get(name, set()) - {path})
    for name in [*old, *within]:
        found.setdefault(name, {"name": name, "change": "modified"})
    for name in new:
        found.setdefault(name, {"name": name, "change": "added"})
    return list(found.values())[:MOST_TOLD]


def _lost(name: str, elsewhere: set[str]) -> Document:
    if len(elsewhere) == 1:
        return {"name": name, "change": "moved", "path": next(iter(elsewhere))}
    return {"name": name, "change": "removed"}


def _standing(repo: Repo, entry: Entry) -> set[str]:
    """What the file defines after the change."""
    if entry.status == "deleted" or not entry.new_blob.strip("0"):
        return set()
    text = repo.run("cat-file", "blob", entry.new_blob).decode(errors="replace")
    lines = text.split("\n")
    return {
        n
        for at in range(0, len(lines), 2000)
        for n in symbols_of(entry.path, lines[at : at + 2000])
    }
