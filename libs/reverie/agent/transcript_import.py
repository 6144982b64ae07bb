"""Transcripts into a gateway: sessions with their times, turns in batches, once.

Sessions and turns carry the ids that their files give them, so that a second import changes
nothing, nor does one of what a hook has handed over. Bounded memory: a batch of each open session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from reverie.agent.hook_turns import as_sent, is_worth
from reverie.agent.one_call import MOST_BYTES, MOST_TURNS, weight
from reverie.agent.transcript_files import Format, Lines, Talk, at_of, read
from reverie.agent.transcripts import ParsedTurn

Ask = Callable[[str, dict[str, Any]], Awaitable[tuple[int, Any]]]
"""A POST to the gateway: its path and body; answers the status and the decoded body."""
Advance = Callable[[int], None]

MOST_OPEN: Final = 50
MOST_NAMED: Final = 200
"""Unreadable lines that are named; all are counted."""
_UNTAKEN: Final = {400, 413, 422}


@dataclass
class Report:
    """What became of the files. `skipped`: turns that only looked around."""

    files: int = 0
    sessions: int = 0
    accepted: int = 0
    duplicates: int = 0
    skipped: int = 0
    redactions: int = 0
    unreadable: int = 0
    refused: int = 0
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keeps what a person should read, up to a limit."""
        if len(self.notes) < MOST_NAMED:
            self.notes.append(text)


class Stopped(Exception):
    """The gateway refused what no other file would mend: `answer` says why."""

    def __init__(self, status: int, answer: Any) -> None:
        super().__init__(status)
        self.status = status
        self.answer = answer


@dataclass
class _Open:
    id: str
    last: datetime | None = None
    turns: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0


class Import:
    """One run over many files. With no `ask` nothing is sent: turns are only counted."""

    def __init__(self, ask: Ask | None, project: str | None = None, end: bool = True) -> None:
        self.report = Report()
        self._ask = ask
        self._project = project
        self._end = end
        self._open: dict[Talk, _Open] = {}
        self._seen: set[tuple[str, str]] = set()

    async def take(self, path: Path, form: Format, advance: Advance) -> None:
        """Reads a file to its end. Raises `Stopped`, and `OSError` where it cannot be read."""

        def unreadable(number: int) -> None:
            self.report.unreadable += 1
            self.report.note(f"{path}:{number}: cannot be read, skipped")

        lines = Lines(path, advance, unreadable)
        self.report.files += 1
        for talk, turn in read(lines, form, self._project):
            if is_worth(turn):
                await self._add(talk, turn)
            else:
                self.report.skipped += 1
        while self._open:
            await self._close(next(iter(self._open)))

    async def _add(self, talk: Talk, turn: ParsedTurn) -> None:
        key = next((one for one in self._open if _same(one, talk)), talk)
        at = self._open.get(key)
        if at is None:
            if len(self._open) >= MOST_OPEN:
                await self._close(next(iter(self._open)))
            at = self._open[key] = _Open(await self._start(talk, turn.at))
        turn = at_of(turn, at.last)
        at.last = max(filter(None, (at.last, turn.at)), default=None)
        sent = as_sent(turn)
        more = weight(sent)
        if len(at.turns) >= MOST_TURNS or at.size + more > MOST_BYTES:
            await self._send(at)
        at.turns.append(sent)
        at.size += more

    async def _start(self, talk: Talk, began: datetime | None) -> str:
        if (talk.agent, talk.external_id) not in self._seen:
            self._seen.add((talk.agent, talk.external_id))
            self.report.sessions += 1
        body = {
            "agent": talk.agent,
            "external_id": talk.external_id[:200],
            "project": talk.project,
            "branch": talk.branch,
            "at": began.isoformat() if began else None,
        }
        given = {name: value for name, value in body.items() if value is not None}
        return str((await self._must("/v1/sessions/start", given)).get("session", ""))

    async def _send(self, at: _Open) -> None:
        turns, at.turns, at.size = at.turns, [], 0
        if not turns or await self._append(at.id, turns):
            return
        for turn in turns:
            if len(turns) == 1 or not await self._append(at.id, [turn]):
                self.report.refused += 1
                self.report.note(f"turn {turn['external_id']}: the gateway cannot take it")

    async def _append(self, session: str, turns: list[dict[str, Any]]) -> bool:
        """Whether the gateway took them."""
        body = {"session": session, "turns": turns}
        try:
            answer = await self._must("/v1/turns", body)
        except Stopped as stopped:
            if stopped.status not in _UNTAKEN:
                raise
            return False
        self.report.accepted += answer.get("accepted", len(turns))
        self.report.duplicates += answer.get("duplicates", 0)
        self.report.redactions += answer.get("redactions", 0)
        return True

    async def _close(self, talk: Talk) -> None:
        at = self._open.pop(talk)
        await self._send(at)
        if self._end:
            body = {"at": at.last.isoformat()} if at.last else {}
            await self._must(f"/v1/sessions/{at.id}/end", body)

    async def _must(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self._ask is None:
            return {}
        status, answer = await self._ask(path, body)
        if status >= 300:
            raise Stopped(status, answer)
        return dict(answer)


def _same(one: Talk, other: Talk) -> bool:
    return (one.agent, one.external_id) == (other.agent, other.external_id)
