"""Delivers a session in the background: turns, bug fixes, corrections and its end.

Runs in its own process, one at a time for each session. What cannot be sent stays pending for a
later hook; external ids make repeated deliveries harmless.
"""

from __future__ import annotations

import os
import sys

from reverie.agent.gateway.http_client import CallRefused, GatewayConnection, GatewayUnavailable
from reverie.agent.hooks.session_state import HookSessionState, iter_pending_sessions
from reverie.agent.transcripts.batch_limits import MAX_BATCH_BYTES, MAX_BATCH_TURNS, encoded_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from reverie.agent.transcripts.turns import ParsedTurn

MAX_REFUSED_SESSIONS = 3
"""After so many refused sessions, a hook stops; the others are sent later."""
REJECTED_STATUSES = frozenset({400, 413, 422})
"""Statuses of calls that no retry can make succeed."""


def run_in_background(work: Callable[[], None]) -> None:
    """Runs the work in a process that outlives this one and prints nothing."""
    sys.stdout.flush()
    if os.fork():
        return
    code = 1
    try:
        os.setsid()
        null_fd = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null_fd, fd)
        work()
        code = 0
    finally:
        os._exit(code)


def start_session(
    state: HookSessionState,
    gateway: GatewayConnection,
    *,
    include_context: bool = False,
    compacted: bool = False,
) -> dict[str, Any]:
    """Starts or resumes the session; the response contains its `context`, if it is to be shown."""
    body = {
        "agent": state.agent,
        "external_id": state.external_id,
        "project": state.facts["project"],
        "include_context": include_context,
        "context_shown": include_context,
        "compacted": compacted,
    }
    if branch := state.facts.get("branch"):
        body["branch"] = branch
    response: dict[str, Any] = gateway.request("POST", "/v1/sessions/start", body)
    state.save(session=response["session"], scope=response["scope"])
    return response


def post_in_session(
    state: HookSessionState,
    gateway: GatewayConnection,
    path: str,
    body: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> Any:
    """A POST in the session, which is started if it does not exist.

    The session replaces `{session}` in the path, or is added to the body.
    """
    for may_retry in (True, False):
        session = state.facts.get("session") or start_session(state, gateway)["session"]
        session_field = {} if "{session}" in path else {"session": session}
        try:
            target = path.replace("{session}", session)
            return gateway.request("POST", target, {**body, **session_field}, headers)
        except CallRefused as error:
            if error.status != 404 or not may_retry:
                raise
            state.save(session=None)
    raise AssertionError


def confirm_delivery(gateway: GatewayConnection, trace_id: str) -> None:
    """Confirms that the agent was given what a preflow returned; not worth a second try."""
    try:
        gateway.request("POST", f"/v1/traces/{trace_id}/delivery")
    except (CallRefused, GatewayUnavailable):
        return


def deliver_session(
    state: HookSessionState, gateway: GatewayConnection | None, turn: dict[str, Any] | None = None
) -> bool | None:
    """Sends new turns of a session, the given turn, and the end of the session.

    Returns True if all is sent, False if the gateway refuses, None if no gateway responds.
    """
    delivered: bool | None = None
    lock_fd = state.acquire_lock()
    try:
        if gateway is not None:
            _deliver_all(
                HookSessionState(state.folder, state.agent, state.external_id), gateway, turn
            )
            delivered = True
    except CallRefused:
        delivered = False
    except (GatewayUnavailable, OSError):
        delivered = None
    finally:
        if not delivered and turn is not None:
            from reverie.agent.hooks.turn_spool import spool_turn

            spool_turn(state.spool_path, turn)
        state.set_pending(not delivered)
        os.close(lock_fd)
    return delivered


def deliver_pending(
    folder: str, connect: Callable[[HookSessionState], GatewayConnection | None]
) -> None:
    """Sends the pending sessions while the gateway responds, each with its agent's key."""
    refused_count = 0
    for state in iter_pending_sessions(folder):
        delivered = deliver_session(state, connect(state))
        refused_count += delivered is False
        if delivered is None or refused_count == MAX_REFUSED_SESSIONS:
            return


def _deliver_all(
    state: HookSessionState, gateway: GatewayConnection, turn: dict[str, Any] | None
) -> None:
    sent_turns = _send_spooled(state, gateway, turn)
    for path in state.facts.get("transcripts", ()):
        sent_turns += _send_transcript(state, gateway, path)
    if sent_turns:
        _request_corrections(state, gateway, sent_turns)
    if state.facts.get("ended"):
        post_in_session(state, gateway, "/v1/sessions/{session}/end", {})


def _send_spooled(
    state: HookSessionState, gateway: GatewayConnection, turn: dict[str, Any] | None
) -> list[dict[str, Any]]:
    sent_turns: list[dict[str, Any]] = []
    if turn is None and not os.path.exists(state.spool_path):
        return sent_turns
    from reverie.agent.hooks.turn_spool import read_spooled_turns

    for batch in _split_batches([*read_spooled_turns(state.spool_path), *([turn] if turn else [])]):
        if _send_turns(state, gateway, batch):
            sent_turns += batch
    if os.path.exists(state.spool_path):
        os.remove(state.spool_path)
    return sent_turns


def _send_transcript(
    state: HookSessionState, gateway: GatewayConnection, path: str
) -> list[dict[str, Any]]:
    """Sends what was added to a transcript; returns the turns that were new to the gateway."""
    sent_turns: list[dict[str, Any]] = []
    has_more = os.path.exists(path)
    while has_more:
        cursors = state.delivery_state.get("cursors", {})
        turns, cursor, has_more = _read_transcript(path, cursors.get(path, 0))
        sent_turns += _send_parsed(state, gateway, turns)
        state.save_delivery_state(cursors={**cursors, path: cursor})
    return sent_turns


def deliver_turns(
    state: HookSessionState, gateway: GatewayConnection, turns: Sequence[ParsedTurn]
) -> None:
    """Sends turns of a session. Raises `GatewayUnavailable` and `CallRefused`."""
    lock_fd = state.acquire_lock()
    try:
        if sent_turns := _send_parsed(state, gateway, turns):
            _request_corrections(state, gateway, sent_turns)
    finally:
        os.close(lock_fd)


def _send_parsed(
    state: HookSessionState, gateway: GatewayConnection, turns: Sequence[ParsedTurn]
) -> list[dict[str, Any]]:
    """Sends turns and the fixes among them; returns what was new to the gateway."""
    from reverie.agent.transcripts.turn_filter import encode_turn, is_worth_sending

    sent_turns: list[dict[str, Any]] = []
    for batch in _split_batches([encode_turn(turn) for turn in turns if is_worth_sending(turn)]):
        if _send_turns(state, gateway, batch):
            sent_turns += batch
    state.save_delivery_state(failed=_remember_fixes(state, gateway, turns))
    return sent_turns


def _read_transcript(path: str, cursor: Any) -> tuple[list[ParsedTurn], Any, bool]:
    """The turns after a cursor, the next cursor, and whether there are more.

    The cursor is a position in a file that grows, and numbers of turns in one written anew.
    """
    if path.endswith(".jsonl"):
        from reverie.agent.transcripts.turn_filter import read_new_turns

        return read_new_turns(path, int(cursor))
    from pathlib import Path

    from reverie.agent.transcripts.files import read_appended

    sessions, counts = read_appended(Path(path), cursor if isinstance(cursor, dict) else {})
    return [turn for turns in sessions.values() for turn in turns], counts, False


def _remember_fixes(
    state: HookSessionState, gateway: GatewayConnection, turns: Sequence[ParsedTurn]
) -> dict[str, Any]:
    """Stores which edits fixed a failing command; returns the commands that still fail."""
    failed: dict[str, Any] = state.delivery_state.get("failed", {})
    if not any(turn.role == "tool" for turn in turns):
        return failed
    from reverie.agent.hooks.bug_fixes import find_fixes

    for fix in find_fixes(turns, failed, str(state.facts.get("root", ""))):
        headers = {"Idempotency-Key": f"fix-{fix.pop('external_id')}"}
        scope = {"scope": state.facts["scope"]} if state.facts.get("scope") else {}
        try:
            post_in_session(state, gateway, "/v1/remember", {**fix, **scope}, headers)
        except CallRefused as error:
            # A resumed transcript repeats the calls of the earlier one, which were stored already.
            if error.status not in REJECTED_STATUSES:
                raise
    return failed


def _send_turns(
    state: HookSessionState, gateway: GatewayConnection, turns: list[dict[str, Any]]
) -> bool:
    """Sends turns; returns whether some were new. Turns that the gateway rejects are dropped."""
    try:
        response = post_in_session(state, gateway, "/v1/turns", {"turns": turns})
    except CallRefused as error:
        if error.status not in REJECTED_STATUSES:
            raise
        half = len(turns) // 2
        accepted = [
            _send_turns(state, gateway, part) for part in (turns[:half], turns[half:]) if half
        ]
        return any(accepted)
    return bool(response["accepted"])


def _split_batches(turns: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for turn in turns:
        turn_size = encoded_size(turn)
        if batch and (len(batch) >= MAX_BATCH_TURNS or size + turn_size > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(turn)
        size += turn_size
    if batch:
        yield batch


def _request_corrections(
    state: HookSessionState, gateway: GatewayConnection, turns: list[dict[str, Any]]
) -> None:
    """Supersedes memories that the user corrected now, without waiting for a dream."""
    messages = [
        {"role": turn["role"], "content": turn["content"]}
        for turn in turns[-MAX_BATCH_TURNS:]
        if turn["role"] in {"user", "assistant"}
    ]
    if any(turn["role"] == "user" for turn in messages):
        try:
            post_in_session(
                state, gateway, "/v1/sessions/{session}/correct", {"messages": messages}
            )
        except CallRefused:
            return
