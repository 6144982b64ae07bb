"""Follows the transcripts of agents without hooks, and stores the position in each."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from reverie.agent.clone_paths import read_json_object, replace_atomically
from reverie.agent.coding_agents import find_coding_agent, transcript_paths
from reverie.agent.transcripts.files import (
    TranscriptSession,
    TurnCounts,
    find_transcripts,
    read_appended,
    session_key,
)
from reverie.agent.transcripts.turns import ParsedTurn
from reverie.agent.watch.known_clones import ALL_CLONES, KnownClone
from reverie.domain.access.scopes import slugify

PAUSE_FACTOR: Final = 20.0
"""A file rests for this many times as long as it took to read."""
FAILED_REST_SECONDS: Final = 300.0
"""A file that cannot be read, or whose turns are refused, rests for so long."""


@dataclass(frozen=True)
class FollowedAgent:
    """An agent without hooks, since when it is followed, and in which projects (None: all)."""

    agent: str
    since: float
    projects: frozenset[str] | None


def followed_agents(clones: Iterable[KnownClone]) -> list[FollowedAgent]:
    """The agents that are set up in these clones and have no hooks."""
    everywhere: dict[str, float] = {}
    projects: dict[str, dict[str, float]] = {}
    for clone in clones:
        for agent, since in clone.agents.items():
            if not find_coding_agent(agent).follows:
                continue
            if clone.root == ALL_CLONES:
                everywhere[agent] = since
            else:
                projects.setdefault(agent, {})[clone.project] = since
    return [FollowedAgent(agent, since, None) for agent, since in everywhere.items()] + [
        FollowedAgent(agent, min(named.values()), frozenset(named))
        for agent, named in projects.items()
        if agent not in everywhere
    ]


class FollowedFiles:
    """The transcripts that are followed. `path` keeps how far each was read."""

    def __init__(self, path: Path, user_home: str) -> None:
        self._path = path
        self._user_home = user_home
        self._read: dict[str, dict[str, Any]] = read_json_object(path)
        self._rests_until: dict[str, float] = {}

    def changed_files(
        self, followed: FollowedAgent, clones: Sequence[KnownClone]
    ) -> Iterator[tuple[Path, str]]:
        """The transcripts that changed since they were read, each with its present state."""
        roots = [clone.root for clone in clones if clone.root != ALL_CLONES]
        for folder in transcript_paths(followed.agent, self._user_home, roots):
            if not os.path.exists(folder):
                continue
            for path, _ in find_transcripts(Path(folder)):
                state = _file_state(path)
                is_new = state and state != self._read.get(str(path), {}).get("state")
                if is_new and self._rests_until.get(str(path), 0.0) <= time.monotonic():
                    yield path, state

    def read(
        self, path: Path, followed: FollowedAgent
    ) -> tuple[dict[TranscriptSession, list[ParsedTurn]], TurnCounts]:
        """What was added to a file since `since`, by sessions of the followed projects."""
        started = time.monotonic()
        self._rests_until[str(path)] = started + FAILED_REST_SECONDS
        sessions, counts = read_appended(path, self._read.get(str(path), {}).get("counts", {}))
        now = time.monotonic()
        self._rests_until[str(path)] = now + PAUSE_FACTOR * (now - started)
        since = datetime.fromtimestamp(followed.since, UTC).replace(microsecond=0)
        added = {}
        for session, turns in sessions.items():
            is_known = followed.projects is None or slugify(session.project) in followed.projects
            recent = [turn for turn in turns if turn.at is None or turn.at >= since]
            if is_known and recent:
                added[session] = recent
        return added, counts

    def record(
        self,
        path: Path,
        state: str,
        counts: TurnCounts,
        refused: Sequence[TranscriptSession] = (),
    ) -> None:
        """Saves that a file was read and sent in this state; forgets files that are gone.

        What was added to the `refused` sessions counts as unread, and is read again after a rest.
        """
        self._read = {name: read for name, read in self._read.items() if os.path.exists(name)}
        before = self._read.get(str(path), {}).get("counts", {})
        unsent = {key: before.get(key, 0) for key in map(session_key, refused)}
        if refused:
            state = ""
            self._rests_until[str(path)] = time.monotonic() + FAILED_REST_SECONDS
        self._read[str(path)] = {"state": state, "counts": {**counts, **unsent}}
        replace_atomically(self._path, json.dumps(self._read).encode(), 0o600)


def _file_state(path: Path) -> str:
    try:
        state = path.stat()
    except OSError:
        return ""
    return f"{state.st_mtime_ns}:{state.st_size}"
