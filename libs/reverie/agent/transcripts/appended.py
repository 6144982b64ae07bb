"""Reads what was added to a transcript, for files that agents write anew as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reverie.agent.transcripts.files import (
    TranscriptLines,
    TranscriptSession,
    detect_format,
    read_turns,
)
from reverie.agent.transcripts.turns import ParsedTurn

SessionKey = str
"""The agent and the external id of a session, apart by a space."""
TurnCounts = dict[SessionKey, int]
"""How many turns of each session were read."""


def session_key(session: TranscriptSession) -> SessionKey:
    """The key of a session in `TurnCounts`."""
    return f"{session.agent} {session.external_id}"


def read_appended(
    path: Path, counts: Mapping[SessionKey, int]
) -> tuple[dict[TranscriptSession, list[ParsedTurn]], TurnCounts]:
    """The turns of each session after those that were read, and how many there are now.

    A session with fewer turns than before was written anew: all of it is given.
    """
    transcript_format = detect_format(path)
    sessions: dict[TranscriptSession, list[ParsedTurn]] = {}
    if transcript_format is not None:
        lines = TranscriptLines(path, lambda _: None, lambda _: None)
        for session, turn in read_turns(lines, transcript_format, None):
            sessions.setdefault(session, []).append(turn)
    totals = {session_key(session): len(turns) for session, turns in sessions.items()}
    appended = {}
    for session, turns in sessions.items():
        done = counts.get(session_key(session), 0)
        if new := turns[done if done <= len(turns) else 0 :]:
            appended[session] = new
    return appended, totals
