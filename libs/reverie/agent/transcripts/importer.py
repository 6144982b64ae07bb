"""Imports transcript files into a gateway: sessions first, then turns in batches.

External ids make a repeated import harmless. Memory is bounded: one batch per open session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from reverie.agent.transcripts.batch_limits import MAX_BATCH_BYTES, MAX_BATCH_TURNS, encoded_size
from reverie.agent.transcripts.files import (
    TranscriptFormat,
    TranscriptLines,
    TranscriptSession,
    read_turns,
    with_time,
)
from reverie.agent.transcripts.turn_filter import encode_turn, is_worth_sending
from reverie.agent.transcripts.turns import ParsedTurn

PostToGateway = Callable[[str, dict[str, Any]], Awaitable[tuple[int, Any]]]
"""A POST to the gateway: takes its path and body; returns the status and the decoded body."""
ProgressCallback = Callable[[int], None]

MAX_OPEN_SESSIONS: Final = 50
MAX_NOTES: Final = 200
"""Unreadable lines that are named; all are counted."""
_REJECTED_STATUSES: Final = {400, 413, 422}


@dataclass
class ImportReport:
    """The outcome for the files. `skipped`: turns that only read or listed something."""

    files: int = 0
    sessions: int = 0
    accepted: int = 0
    duplicates: int = 0
    skipped: int = 0
    redactions: int = 0
    unreadable: int = 0
    rejected: int = 0
    notes: list[str] = field(default_factory=list)

    def add_note(self, text: str) -> None:
        """Keeps what a person should read, up to a limit."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)


class ImportStopped(Exception):
    """A rejection by the gateway that applies to all files: `response` contains the reason."""

    def __init__(self, status: int, response: Any) -> None:
        super().__init__(status)
        self.status = status
        self.response = response


@dataclass
class _OpenSession:
    id: str
    last_at: datetime | None = None
    turns: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0


class TranscriptImporter:
    """One run over many files. Without `post` nothing is sent: turns are only counted."""

    def __init__(
        self, post: PostToGateway | None, project: str | None = None, end_sessions: bool = True
    ) -> None:
        self.report = ImportReport()
        self._post = post
        self._project = project
        self._end_sessions = end_sessions
        self._open_sessions: dict[tuple[str, str], _OpenSession] = {}
        self._counted_sessions: set[tuple[str, str]] = set()

    async def import_file(
        self, path: Path, transcript_format: TranscriptFormat, advance: ProgressCallback
    ) -> None:
        """Imports a file to its end.

        Raises `ImportStopped`, and `OSError` if the file cannot be read.
        """

        def unreadable(number: int) -> None:
            self.report.unreadable += 1
            self.report.add_note(f"{path}:{number}: cannot be read, skipped")

        lines = TranscriptLines(path, advance, unreadable)
        self.report.files += 1
        for session, turn in read_turns(lines, transcript_format, self._project):
            if is_worth_sending(turn):
                await self._add_turn(session, turn)
            else:
                self.report.skipped += 1
        while self._open_sessions:
            await self._close_session(next(iter(self._open_sessions)))

    async def _add_turn(self, session: TranscriptSession, turn: ParsedTurn) -> None:
        key = (session.agent, session.external_id)
        open_session = self._open_sessions.get(key)
        if open_session is None:
            if len(self._open_sessions) >= MAX_OPEN_SESSIONS:
                await self._close_session(next(iter(self._open_sessions)))
            open_session = self._open_sessions[key] = _OpenSession(
                await self._start_session(session, turn.at)
            )
        turn = with_time(turn, open_session.last_at)
        open_session.last_at = max(filter(None, (open_session.last_at, turn.at)), default=None)
        body = encode_turn(turn)
        turn_size = encoded_size(body)
        if (
            len(open_session.turns) >= MAX_BATCH_TURNS
            or open_session.size + turn_size > MAX_BATCH_BYTES
        ):
            await self._send_batch(open_session)
        open_session.turns.append(body)
        open_session.size += turn_size

    async def _start_session(self, session: TranscriptSession, started_at: datetime | None) -> str:
        if (session.agent, session.external_id) not in self._counted_sessions:
            self._counted_sessions.add((session.agent, session.external_id))
            self.report.sessions += 1
        body = {
            "agent": session.agent,
            "external_id": session.external_id[:200],
            "project": session.project,
            "branch": session.branch,
            "at": started_at.isoformat() if started_at else None,
        }
        fields = {name: value for name, value in body.items() if value is not None}
        return str((await self._post_checked("/v1/sessions/start", fields)).get("session", ""))

    async def _send_batch(self, open_session: _OpenSession) -> None:
        turns, open_session.turns, open_session.size = open_session.turns, [], 0
        if not turns or await self._append_turns(open_session.id, turns):
            return
        for turn in turns:
            if len(turns) == 1 or not await self._append_turns(open_session.id, [turn]):
                self.report.rejected += 1
                self.report.add_note(f"turn {turn['external_id']}: the gateway cannot take it")

    async def _append_turns(self, session_id: str, turns: list[dict[str, Any]]) -> bool:
        """Sends the turns; returns whether the gateway accepted them."""
        body = {"session": session_id, "turns": turns}
        try:
            response = await self._post_checked("/v1/turns", body)
        except ImportStopped as error:
            if error.status not in _REJECTED_STATUSES:
                raise
            return False
        self.report.accepted += response.get("accepted", len(turns))
        self.report.duplicates += response.get("duplicates", 0)
        self.report.redactions += response.get("redactions", 0)
        return True

    async def _close_session(self, key: tuple[str, str]) -> None:
        open_session = self._open_sessions.pop(key)
        await self._send_batch(open_session)
        if self._end_sessions:
            body = {"at": open_session.last_at.isoformat()} if open_session.last_at else {}
            await self._post_checked(f"/v1/sessions/{open_session.id}/end", body)

    async def _post_checked(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self._post is None:
            return {}
        status, response = await self._post(path, body)
        if status >= 300:
            raise ImportStopped(status, response)
        return dict(response)
