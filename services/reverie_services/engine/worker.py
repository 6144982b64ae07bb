"""The engine's worker: takes tickets of turns, claims the turns, and runs each to its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any
from uuid import UUID, uuid5

import structlog

from reverie.bus.interface import Message, Reject, Retry, verify_tenant
from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.store.engine.turns import ClaimedTurn, LostTurn
from reverie_services.engine.agents import narrow_mode, resolve_agents
from reverie_services.engine.dependencies import TurnDependencies
from reverie_services.engine.events import TurnEmitter, cancel_and_wait
from reverie_services.engine.redaction import clean_text
from reverie_services.engine.turn_state import TurnState
from reverie_services.engine.turns.results import TurnResult
from reverie_services.engine.turns.run_turn import TurnRun, new_state

MAX_ATTEMPTS = 5
"""The workers that may die during a turn before it is given up."""

DRAIN_SECONDS = 10.0
"""Seconds that an ended turn waits for its events to be sent; then its ticket comes again."""

log = structlog.get_logger("reverie.engine")


async def handle_ticket(deps: TurnDependencies, message: Message) -> None:
    """Runs the turn of a ticket, unless it is over. Another worker's turn is checked later."""
    try:
        body = json.loads(message.data)
        tenant, turn_id = int(body["tenant"]), UUID(body["turn"])
    except (ValueError, KeyError, TypeError) as error:
        raise Reject("not a ticket for a turn") from error
    name = message.subject.split(".")[1]
    if not verify_tenant(name, await deps.conversations.get_tenant_name(tenant)):
        return
    claimed = await deps.turns.claim(tenant, name, turn_id, deps.settings.worker)
    if isinstance(claimed, float):
        raise Retry(claimed + 0.2, "another worker has this turn")
    if claimed is None:
        await _emit_end_again(deps, tenant, name, turn_id)
        return
    with suppress(LostTurn):
        await _run_claimed(deps, claimed)


async def _run_claimed(deps: TurnDependencies, turn: ClaimedTurn) -> None:
    started = monotonic()
    redactor = await deps.load_redactor(turn.tenant)
    emitter = TurnEmitter(deps.bus, turn, redactor)
    sender = asyncio.create_task(emitter.run())
    deps.metrics.running.inc()
    try:
        result = await _run_under_lease(deps, turn, emitter)
        content = clean_text(result.content, redactor)
        error = clean_text(result.error, redactor) if result.error else None
        await deps.turns.end(turn, result.status, result.outcome, error, content)
        if result.status == "waiting":
            _emit_approvals(emitter, result.waits)
        else:
            _emit_end(emitter, result.status, result.outcome, content, error)
        deps.metrics.observe_turn(result.outcome, monotonic() - started)
        await _drain(emitter)
    except (asyncio.CancelledError, Unavailable):
        # An outage of memory is not the worker's death and counts as no attempt.
        await asyncio.shield(_give_back(deps, turn))
        raise
    finally:
        deps.metrics.running.dec()
        await cancel_and_wait(sender)


async def _emit_end_again(
    deps: TurnDependencies, tenant: int, tenant_name: str, turn_id: UUID
) -> None:
    """Sends the end or the approvals of a turn again: the worker that stored them may have died."""
    turn = await deps.turns.load_ended(tenant, tenant_name, turn_id)
    if turn is None:
        return
    emitter = TurnEmitter(deps.bus, turn, await deps.load_redactor(tenant), turn.requests)
    sender = asyncio.create_task(emitter.run())
    try:
        for handed in turn.handed_on:
            emitter.emit_hand_over(handed["to"], UUID(handed["turn"]))
        if turn.status == "waiting":
            _emit_approvals(emitter, turn.waits)
        else:
            _emit_end(emitter, turn.status, turn.outcome, turn.content, turn.error)
        await _drain(emitter)
    finally:
        await cancel_and_wait(sender)


async def _drain(emitter: TurnEmitter) -> None:
    if not await emitter.drain(DRAIN_SECONDS):
        raise Retry(1.0, "nobody was told how the turn ended")


def _emit_approvals(emitter: TurnEmitter, waits: Mapping[str, Any]) -> None:
    """Called once the turn waits, because a client may decide at once."""
    for call, entry in waits.items():
        if entry.get("approved") is None:
            data = {"call": call, "tool": entry["tool"], "arguments": entry["arguments"]}
            emitter.emit("approval", data, str(uuid5(emitter.turn.id, call)))


def _emit_end(
    emitter: TurnEmitter, status: str, outcome: str, content: str, error: str | None
) -> None:
    """Their ids do not depend on the epoch: another worker may send them again."""
    turn = emitter.turn.id
    emitter.emit("stop", {"reason": outcome, "error": error}, f"{turn}.stop")
    emitter.emit("result", {"status": status, "content": content}, f"{turn}.result")


async def _run_under_lease(
    deps: TurnDependencies, turn: ClaimedTurn, emitter: TurnEmitter
) -> TurnResult:
    """The result of the turn; its lease is kept meanwhile, and a request to stop ends it."""
    state = new_state(deps, turn, emitter)
    task = asyncio.create_task(_run_turn(deps, turn, emitter, state))
    try:
        with deps.leases.hold(turn) as ended:
            either: set[asyncio.Future[Any]] = {task, ended}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            ended.result()
        await _cancel(task)
        return TurnResult("stopped", "stopped", emitter.text if state.has_streamed else "")
    finally:
        if not task.done():
            await _cancel(task)


async def _cancel(task: asyncio.Task[TurnResult]) -> None:
    task.cancel()
    await asyncio.wait({task})


async def _run_turn(
    deps: TurnDependencies, turn: ClaimedTurn, emitter: TurnEmitter, state: TurnState
) -> TurnResult:
    if turn.stop_requested:
        return TurnResult("stopped", "stopped")
    if turn.attempts > MAX_ATTEMPTS:
        return TurnResult("failed", "given_up", "", f"{MAX_ATTEMPTS} workers died over it")
    agents = resolve_agents({turn.agent: turn.spec} if turn.spec else {})
    if turn.agent in agents:
        turn = replace(turn, mode=narrow_mode(agents[turn.agent].mode, turn.mode))
    data = {"attempt": turn.attempts, "chain": str(turn.chain), "depth": turn.depth}
    emitter.emit("turn_started", data | {"mode": turn.mode})
    if turn.api_key is None or turn.agent not in agents:
        return TurnResult("failed", "error", "", "the agent or the author's key is gone")
    try:
        async with deps.open_memory(turn.api_key) as reverie:
            run = TurnRun(deps, turn, agents[turn.agent], state, emitter.redactor, reverie)
            return await run.run()
    except Unavailable:
        raise
    except ReverieError as error:
        return TurnResult("failed", "error", "", str(error))


async def _give_back(deps: TurnDependencies, turn: ClaimedTurn) -> None:
    """Releases the turn to the next worker at once if this one is stopped."""
    try:
        await deps.turns.release(turn)
    except ReverieError as error:
        log.warning("turn_release_failed", reason=str(error))
