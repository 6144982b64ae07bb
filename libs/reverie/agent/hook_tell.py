"""The part of a hook that nobody waits for: sending what was said, ending sessions, commits.

It runs in a process of its own, one at a time for each session. What cannot be sent stays noted
and is sent by a later hook, of whatever session; what is sent twice counts once, by external ids.
What is refused of one session holds up no other.
"""

from __future__ import annotations

import os
import sys

from reverie.agent.hook_gateway import Away, Gateway, Refused
from reverie.agent.hook_notes import Notes, waiting
from reverie.agent.one_call import MOST_BYTES, MOST_TURNS, weight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from reverie.agent.transcripts import ParsedTurn

MOST_REFUSED = 3
"""Sessions that one hook asks for again in vain; those behind them have their turn later."""
UNTAKEN = frozenset({400, 413, 422})
"""What the gateway cannot take, however often it is sent."""


def beside(work: Callable[[], None]) -> None:
    """Does the work in a process of its own, which outlives this one and says nothing."""
    sys.stdout.flush()
    if os.fork():
        return
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        work()
        code = 0
    finally:
        os._exit(code)


def start(notes: Notes, gateway: Gateway) -> dict[str, Any]:
    """Starts the session, or finds it again; the answer has its `context`."""
    body = {"agent": notes.agent, "external_id": notes.external, "project": notes.facts["project"]}
    if branch := notes.facts.get("branch"):
        body["branch"] = branch
    started: dict[str, Any] = gateway.ask("POST", "/v1/sessions/start", body)
    notes.save(session=started["session"], scope=started["scope"])
    return started


def in_session(
    notes: Notes,
    gateway: Gateway,
    path: str,
    body: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> Any:
    """A POST that names the session, which is started where that was not done or it is gone.

    `{session}` in the path stands for it; else it goes into the body.
    """
    for again in (True, False):
        session = notes.facts.get("session") or start(notes, gateway)["session"]
        named = {} if "{session}" in path else {"session": session}
        try:
            where = path.replace("{session}", session)
            return gateway.ask("POST", where, {**body, **named}, headers)
        except Refused as refused:
            if refused.status != 404 or not again:
                raise
            notes.save(session=None)
    raise AssertionError


def tell(notes: Notes, gateway: Gateway | None, turn: dict[str, Any] | None = None) -> bool | None:
    """Sends what is new of a session, a turn of no transcript, and its end.

    Whether all is sent: False where the gateway refuses it, None where none answers.
    """
    done: bool | None = None
    lock = notes.alone()
    try:
        if gateway is not None:
            _tell_all(Notes(notes.folder, notes.agent, notes.external), gateway, turn)
            done = True
    except Refused:
        done = False
    except (Away, OSError):
        done = None
    finally:
        if not done and turn is not None:
            from reverie.agent.hook_spool import keep

            keep(notes.spool, turn)
        notes.wait(not done)
        os.close(lock)
    return done


def tell_waiting(folder: str, gateway: Gateway) -> None:
    """Sends what could not be sent before, as long as the gateway answers."""
    refused = 0
    for notes in waiting(folder):
        done = tell(notes, gateway)
        refused += done is False
        if done is None or refused == MOST_REFUSED:
            return


def _tell_all(notes: Notes, gateway: Gateway, turn: dict[str, Any] | None) -> None:
    said = _send_kept(notes, gateway, turn)
    for path in notes.facts.get("transcripts", ()):
        said += _send_transcript(notes, gateway, path)
    if said:
        _correct(notes, gateway, said)
    if notes.facts.get("ended"):
        in_session(notes, gateway, "/v1/sessions/{session}/end", {})


def _send_kept(notes: Notes, gateway: Gateway, turn: dict[str, Any] | None) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    if turn is None and not os.path.exists(notes.spool):
        return sent
    from reverie.agent.hook_spool import kept

    for batch in _batches([*kept(notes.spool), *([turn] if turn else [])]):
        if _send(notes, gateway, batch):
            sent += batch
    if os.path.exists(notes.spool):
        os.remove(notes.spool)
    return sent


def _send_transcript(notes: Notes, gateway: Gateway, path: str) -> list[dict[str, Any]]:
    from reverie.agent.hook_turns import as_sent, is_worth, read_new

    sent: list[dict[str, Any]] = []
    more = os.path.exists(path)
    while more:
        cursors = notes.sent.get("cursors", {})
        turns, cursor, more = read_new(path, int(cursors.get(path, 0)))
        for batch in _batches([as_sent(one) for one in turns if is_worth(one)]):
            if _send(notes, gateway, batch):
                sent += batch
        failed = _remember_fixes(notes, gateway, turns)
        notes.save_sent(cursors={**cursors, path: cursor}, failed=failed)
    return sent


def _remember_fixes(notes: Notes, gateway: Gateway, turns: list[ParsedTurn]) -> dict[str, Any]:
    """Remembers which edits made a command go through; answers those that still fail."""
    failed: dict[str, Any] = notes.sent.get("failed", {})
    if not any(turn.role == "tool" for turn in turns):
        return failed
    from reverie.agent.hook_fixes import fixes

    for one in fixes(turns, failed, str(notes.facts.get("root", ""))):
        once = {"Idempotency-Key": f"fix-{one.pop('external_id')}"}
        place = {"scope": notes.facts["scope"]} if notes.facts.get("scope") else {}
        try:
            in_session(notes, gateway, "/v1/remember", {**one, **place}, once)
        except Refused as refused:
            # A transcript that goes on from another repeats its calls: the other told of them.
            if refused.status not in UNTAKEN:
                raise
    return failed


def _send(notes: Notes, gateway: Gateway, turns: list[dict[str, Any]]) -> bool:
    """Whether some were new. Turns that the gateway cannot take are not sent again; those beside
    them are."""
    try:
        answer = in_session(notes, gateway, "/v1/turns", {"turns": turns})
    except Refused as refused:
        if refused.status not in UNTAKEN:
            raise
        half = len(turns) // 2
        new = [_send(notes, gateway, part) for part in (turns[:half], turns[half:]) if half]
        return any(new)
    return bool(answer["accepted"])


def _batches(turns: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for turn in turns:
        more = weight(turn)
        if batch and (len(batch) >= MOST_TURNS or size + more > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(turn)
        size += more
    if batch:
        yield batch


def _correct(notes: Notes, gateway: Gateway, said: list[dict[str, Any]]) -> None:
    """Lets what the user corrected step down at once, not only with the next dream."""
    words = [
        {"role": turn["role"], "content": turn["content"]}
        for turn in said[-MOST_TURNS:]
        if turn["role"] in {"user", "assistant"}
    ]
    if any(turn["role"] == "user" for turn in words):
        try:
            in_session(notes, gateway, "/v1/sessions/{session}/adjust", {"messages": words})
        except Refused:
            return
