"""Iterates the files of a folder that match a pattern, within a time limit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from time import monotonic

ANY_DEPTH = "**"


class WalkTooLong(Exception):
    """The time for a walk is over."""


def walk_files(root: Path, pattern: Sequence[str], seconds: float) -> Iterator[Path]:
    """Files below a root whose parts match those of a pattern; `**` stands for any folders.

    Each folder is visited once, by name, and only if the pattern may match in it. Links to folders
    are not followed. Raises `WalkTooLong`, also while nothing matches.
    """
    end = monotonic() + seconds
    folders = [(root, _skip_any_depth(pattern, {0}))]
    while folders:
        folder, places = folders.pop()
        below: list[tuple[Path, set[int]]] = []
        for entry in _list(folder):
            if monotonic() > end:
                raise WalkTooLong
            after = _advance(pattern, places, entry.name)
            if entry.is_dir(follow_symlinks=False):
                below.append((folder / entry.name, after))
            elif len(pattern) in after:
                yield folder / entry.name
        folders += [(path, after) for path, after in reversed(below) if after]


def _list(folder: Path) -> list[os.DirEntry[str]]:
    """The entries by name; none if the folder is gone or not readable."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


def _advance(pattern: Sequence[str], places: set[int], name: str) -> set[int]:
    """The places in a pattern that may come after a name."""
    after: set[int] = set()
    for place in places - {len(pattern)}:
        if pattern[place] == ANY_DEPTH:
            after.add(place)
        elif fnmatchcase(name, pattern[place]):
            after.add(place + 1)
    return _skip_any_depth(pattern, after)


def _skip_any_depth(pattern: Sequence[str], places: set[int]) -> set[int]:
    """The places, and those after each `**`, which may stand for no folder."""
    found = set(places)
    for place, part in enumerate(pattern):
        if place in found and part == ANY_DEPTH:
            found.add(place + 1)
    return found
