"""Where in the code a memory's words are: lines and symbols at a commit.

The server holds no source: who is beside it finds them, and sends them with the memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from reverie.agent.definitions import Definition, definitions
from reverie.agent.git_repo import Repo
from reverie.contracts.memories import GitPlace
from reverie.domain.anchors import paths, same_file
from reverie.domain.code_names import code_names
from reverie.domain.errors import ReverieError

NAMESAKES = 3
"""What so many definitions are called, or so many lines hold, tells a place; more tell none."""
_LINES = re.compile(r"(?:\blines? |:L?|#L)(\d{1,6})(?:\s?[-–]\s?L?(\d{1,6}))?\b", re.I)


@dataclass(frozen=True)
class Found:
    """The definitions that a text names in a file, and further lines that it speaks of."""

    symbols: tuple[Definition, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()


def find(text: str, path: str, source: bytes, alone: bool = True) -> Found:
    """What a text speaks of in a file: lines that it gives, definitions that it names, else the
    few lines in which a name stands. `alone`: it names no other file, so that its lines are here.
    """
    names = code_names(text)
    symbols = _innermost(_chosen(definitions(path, source), names))
    rest = names - {one.name for one in symbols}
    content = source.decode(errors="replace").splitlines()
    lines = _given(text, path, alone, len(content))
    if not symbols and not lines:
        lines = _standing(content, rest)
    return Found(tuple(symbols), tuple(lines))


def place_of(repo: Repo, text: str, files: Iterable[str] = (), at: str | None = None) -> GitPlace:
    """Where a text belongs in a clone: at a commit, else at what is checked out now, edits
    included. Files that the text names are found by their endings, too. Raises `NotFound`."""
    commit = repo.commit(at or "HEAD", "at")
    meant = _meant([*files, *paths(text)], _files(repo, commit))
    told: dict[str, Any] = {
        "commit": commit,
        "committed_at": repo.text("show", "-s", "--format=%cI", commit),
        "branch": repo.branch if at is None else None,
        "files": meant,
        "lines": {},
        "symbols": {},
        "blobs": {},
    }
    for path in meant:
        source = _source(repo, commit, path, now=at is None)
        if source is None:
            continue
        told["blobs"][path] = source[0]
        found = find(text, path, source[1], alone=len(meant) == 1)
        if found.lines:
            told["lines"][path] = [list(span) for span in found.lines]
        if found.symbols:
            told["symbols"][path] = [
                {"name": one.name, "lines": [one.first, one.last]} for one in found.symbols
            ]
    return GitPlace.model_validate(
        {name: value for name, value in told.items() if value}, strict=False
    )


def place_then(repo: Repo, lacking: Mapping[str, Any]) -> GitPlace | None:
    """Where a memory, as `GET /v1/git/anchors` lists it, belongs in the last commit before it was
    learned; None where nowhere."""
    try:
        commit = repo.before(datetime.fromisoformat(lacking["learned_at"]), "HEAD")
        place = place_of(repo, lacking["content"], lacking["files"], commit) if commit else None
    except ReverieError:
        return None
    return place if place and place.blobs else None


def told_of(
    places: Iterable[tuple[Mapping[str, Any], GitPlace | None]],
) -> list[dict[str, Any]]:
    """What to tell of the memories that have a place."""
    return [
        {"memory": one["memory"], "git": place.model_dump(mode="json", exclude_defaults=True)}
        for one, place in places
        if place is not None
    ]


@lru_cache(maxsize=64)
def _files(repo: Repo, commit: str) -> tuple[str, ...]:
    return tuple(repo.text("ls-tree", "-r", "--name-only", "-z", commit).split("\0"))


def _source(repo: Repo, commit: str, path: str, now: bool) -> tuple[str, bytes] | None:
    """Git's name of a file's content and the content itself; none of what is not there."""
    file = repo.root / path
    if now and file.is_file() and not file.is_symlink():
        content = file.read_bytes()
        return repo.text("hash-object", "--", path), content
    blob = repo.run("rev-parse", "-q", "--verify", f"{commit}:{path}", ok=(0, 1, 128))
    name = blob.decode().strip()
    return (name, repo.run("cat-file", "blob", name)) if name else None


def _meant(named: Sequence[str], known: Sequence[str]) -> list[str]:
    """The files of the commit that the names mean, each name if it means one alone."""
    by_last: defaultdict[str, list[str]] = defaultdict(list)
    for path in known:
        by_last[path.rpartition("/")[2]].append(path)
    found: dict[str, None] = {}
    for name in named:
        plain = name.removeprefix("./")
        like = by_last[plain.rpartition("/")[2]]
        same = [plain] if plain in like else [path for path in like if same_file(plain, path)]
        if len(same) == 1:
            found[same[0]] = None
    return list(found)


def _chosen(defined: Sequence[Definition], names: frozenset[str]) -> list[Definition]:
    by_name: defaultdict[str, list[Definition]] = defaultdict(list)
    for one in defined:
        if one.name in names:
            by_name[one.name].append(one)
    return [one for those in by_name.values() if len(those) <= NAMESAKES for one in those]


def _innermost(found: Sequence[Definition]) -> list[Definition]:
    """Of `Store.load` the method: what holds another that is named is only its address."""
    return [
        one
        for one in sorted(set(found), key=lambda d: (d.first, d.last, d.name))
        if not any(
            one != other and one.first <= other.first and other.last <= one.last for other in found
        )
    ]


def _given(text: str, path: str, alone: bool, last: int) -> list[tuple[int, int]]:
    """Lines that the text gives by number, where it is this file that they are of."""
    name = path.rpartition("/")[2]
    spans = []
    for match in _LINES.finditer(text):
        here = (
            alone if match[0].lower().startswith("line") else text[: match.start()].endswith(name)
        )
        first, end = int(match[1]), int(match[2] or match[1])
        if here and 0 < first <= end <= last:
            spans.append((first, end))
    return list(dict.fromkeys(spans))


def _standing(content: Sequence[str], names: Iterable[str]) -> list[tuple[int, int]]:
    """The lines in which a name stands that stands in few."""
    spans: set[tuple[int, int]] = set()
    for name in names:
        whole = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        lines = [n for n, line in enumerate(content, 1) if name in line and whole.search(line)]
        if len(lines) <= NAMESAKES:
            spans |= {(n, n) for n in lines}
    return sorted(spans)
