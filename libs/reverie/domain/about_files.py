"""Which files a memory is about that was made from a conversation, and when the work wrote them.

A file that is merely listed or read is none of them: only one that the memory names, that what it
reports was written to, or that the conversation gives as the home of a name in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reverie.domain import cues
from reverie.domain.anchors import files_of, paths, same_file
from reverie.domain.code_names import code_names
from reverie.domain.turns import TurnText, trace_status

MAX_FILES = 16
NEAR = 200
"""How many turns before a report can be what it reports."""

_WRITERS = frozenset({"edit", "write", "multiedit", "notebookedit", "apply_patch", "create"})
# Not one that stands in prose or on a command line, too.
_SHAPED = re.compile(r"[a-z][A-Z]|[A-Z][a-z]+[A-Z]|[a-z0-9]_[a-z0-9]|[A-Z]_[A-Z]")
_PLACED = re.compile(r"\blines? \d", re.I)


@dataclass(frozen=True)
class Worked:
    """The work that turns tell of: the files that tools were given, when each was written, and the
    files that messages name beside a name of code, and no other."""

    given: tuple[tuple[datetime, str], ...]
    written: Mapping[str, tuple[datetime, ...]]
    homes: Mapping[str, frozenset[str]]


def worked(turns: Iterable[TurnText], roots: Sequence[str] = ()) -> Worked:
    """What the turns tell of the work. `roots`: the folders that absolute paths are relative to."""
    told = list(turns)
    given = [(turn.at, file) for turn in told for file in worked_on(turn, roots)]
    written: defaultdict[str, list[datetime]] = defaultdict(list)
    for turn in writers(told):
        for file in worked_on(turn, roots):
            written[file].append(turn.at)
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for turn in told:
        for name, file in _homes(turn, roots):
            homes[name].add(_whole(file, _by(given, turn.at)))
    return Worked(
        tuple(given),
        {file: tuple(at) for file, at in written.items()},
        {name: frozenset(_apart(sorted(files))) for name, files in homes.items()},
    )


def files_about(
    text: str, changed: Iterable[TurnText], work: Worked, by: datetime, roots: Sequence[str] = ()
) -> tuple[str, ...]:
    """The files that a memory is about: those that it names, those that the turns it reports
    changed, and where it names none the homes of the names in it. `by`: when it was said."""
    given = _by(work.given, by)
    named = [_whole(file, given) for file in paths(text, roots)]
    named += [file for turn in changed for file in worked_on(turn, roots)]
    if not named:
        homes = (work.homes.get(name, frozenset()) for name in sorted(code_names(text)))
        named = [next(iter(files)) for files in homes if len(files) == 1]
    return tuple(_apart(named))[:MAX_FILES]


def reported(text: str, replies: Sequence[TurnText], turn: TurnText, final: bool) -> list[TurnText]:
    """The turns that wrote what a report says was done, or gives by the lines of the one file."""
    if final and cues.DONE.match(text):
        return writers(replies)
    if not (cues.DONE.match(text) or cues.FIX.search(text) or _PLACED.search(text)):
        return []
    place = bisect_left(replies, turn.ord, key=lambda reply: reply.ord)
    before = writers(replies[max(place - NEAR, 0) : place])
    return before if len({file for one in before for file in worked_on(one)}) == 1 else []


def wrote(files: Iterable[str], work: Worked, by: datetime) -> tuple[tuple[str, datetime], ...]:
    """Of the files those that the work had written by then, each with when it last had."""
    found = {
        file: [at for path, times in work.written.items() if same_file(file, path) for at in times]
        for file in files
    }
    earlier = ((file, [at for at in times if at <= by]) for file, times in found.items())
    return tuple((file, max(times)) for file, times in earlier if times)


def writers(turns: Iterable[TurnText]) -> list[TurnText]:
    """The tool turns that wrote a file."""
    return [
        turn
        for turn in turns
        if turn.role == "tool"
        and (turn.tool or "").lower() in _WRITERS
        and trace_status(turn.content) == "ok"
    ]


def worked_on(turn: TurnText, roots: Sequence[str] = ()) -> list[str]:
    """The files that a tool was given; none of a message."""
    return files_of(turn, roots) if turn.role == "tool" else []


def _by(given: Iterable[tuple[datetime, str]], at: datetime) -> list[str]:
    """The files that tools had been given by then, each once, the last one last."""
    earlier = [file for given_at, file in given if given_at <= at]
    return list(dict.fromkeys(reversed(earlier)))[::-1]


def _whole(file: str, given: Sequence[str]) -> str:
    """The path that tools were given for a file named by its end: as it is named, else the longest
    where one goes on in another, else the last."""
    fits = [path for path in given if path.endswith(f"/{file}")]
    if not fits or ("/" in file and file in given):
        return file
    longest = max(fits, key=len)
    return longest if all(longest.endswith(path) for path in fits) else fits[-1]


def _homes(turn: TurnText, roots: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Names of code, each with the one file that its line of a message names."""
    if turn.role != "assistant":
        return
    for line in turn.content.splitlines():
        if "." not in line or not _SHAPED.search(line):
            continue
        names = [name for name in code_names(line) if _SHAPED.search(name)]
        files = paths(line, roots) if names else []
        if len(files) == 1:
            yield from ((name, files[0]) for name in names)


def _apart(files: Iterable[str]) -> list[str]:
    """Each file once: of two names of one, the longer."""
    once = list(dict.fromkeys(files))
    return [one for one in once if not any(other.endswith(f"/{one}") for other in once)]
