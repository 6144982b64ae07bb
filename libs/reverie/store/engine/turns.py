"""Stores turns as work items: claimed under a lease, written under an epoch, with their effects."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, turn_subject
from reverie.domain.core.errors import NotFound, Unavailable
from reverie.domain.core.ids import new_id
from reverie.store.db.database import Database
from reverie.store.db.encryption import SecretCipher, SecretLocation


@dataclass(frozen=True)
class ChainLimits:
    """Limits of what one message may cause.

    `depth`: hand-overs in a row. `turns`: all turns. `rate`: turns of one agent in
    `rate_seconds`.
    """

    depth: int = 30
    turns: int = 100
    rate: int = 8
    rate_seconds: float = 5.0


@dataclass(frozen=True)
class NewTurns:
    """Turns to add, one for each agent. `ids` in the order of `agents`."""

    agents: Sequence[str]
    ids: Sequence[UUID]
    mode: str = "unified"

    def encode(self) -> list[dict[str, str]]:
        """Encodes the targets for the store."""
        pairs = zip(self.ids, self.agents, strict=True)
        return [{"id": str(turn), "agent": agent} for turn, agent in pairs]


@dataclass(frozen=True, eq=False)
class ClaimedTurn:
    """A turn that this worker holds until its lease ends. Every write names its epoch.

    `is_first`: of the turns that answer the user's message.
    """

    tenant: int
    tenant_name: str
    id: UUID
    epoch: int
    group: UUID
    group_name: str
    session: UUID
    scope: str
    project: str | None
    agents: list[str]
    agent: str
    spec: Mapping[str, Any] | None
    chain: UUID
    parent: UUID | None
    depth: int
    mode: str
    task: str | None
    seen: int
    attempts: int
    stop_requested: bool
    messages: list[Any]
    approvals: Mapping[str, Any]
    requests: int
    is_first: bool
    api_key: str | None = field(repr=False)


@dataclass(frozen=True)
class EndedTurn:
    """A turn that is over, and its answer; or one that waits for a person, and its calls.

    `handed_on`: `to` whom it handed on, each with the `turn`.
    """

    tenant_name: str
    id: UUID
    epoch: int
    group: UUID
    scope: str
    agent: str
    requests: int
    status: str
    outcome: str
    error: str | None
    content: str
    waits: Mapping[str, Any]
    handed_on: Sequence[Mapping[str, str]]


class LostTurn(Exception):
    """Another worker has taken the turn over."""


class TurnTable:
    """The turns of all tenants."""

    def __init__(self, database: Database, cipher: SecretCipher, lease_seconds: float) -> None:
        self._db, self._cipher = database, cipher
        self._lease = timedelta(seconds=lease_seconds)

    async def post(
        self,
        tenant: tuple[int, str],
        group: UUID,
        author: str,
        content: str,
        images: Sequence[tuple[UUID, str, bytes]],
        turns: NewTurns,
        api_key: str,
        limits: ChainLimits,
        headers: Mapping[str, str],
        message: UUID,
    ) -> tuple[int, list[OutgoingEvent]]:
        """Stores what a user says and the turns that it causes; returns its number, the tickets."""
        sealed, key_id = self._cipher.encrypt(_location(tenant[0], message), api_key)
        encoded_images = [
            {"id": str(id), "media_type": kind, "data": base64.b64encode(data).decode()}
            for id, kind, data in images
        ]
        number = await self._db.call(
            "engine_post",
            *tenant,
            group,
            message,
            author,
            content,
            encoded_images,
            turns.encode(),
            turns.mode,
            sealed,
            key_id,
            vars(limits),
            dict(headers),
        )
        return number, [_ticket(tenant, turn, turn, headers) for turn in turns.ids]

    async def hand_on(
        self, turn: ClaimedTurn, turns: NewTurns, task: str, limits: ChainLimits
    ) -> tuple[str | None, list[OutgoingEvent]]:
        """Adds a turn of another agent to the chain; returns the limit that forbids it, if any."""
        tenant = (turn.tenant, turn.tenant_name)
        found = await self._db.call(
            "engine_add_turns",
            *tenant,
            turn.group,
            turn.chain,
            turn.id,
            turn.depth + 1,
            turns.encode(),
            turns.mode,
            task,
            turn.seen,
            vars(limits),
            {},
        )
        return found.get("problem"), [_ticket(tenant, id, id, {}) for id in turns.ids]

    async def claim(
        self, tenant: int, tenant_name: str, turn: UUID, worker: str
    ) -> ClaimedTurn | float | None:
        """Claims a turn; the seconds that another worker holds it, or None if it is not open."""
        row = await self._db.call("engine_claim", tenant, turn, worker, self._lease)
        if row is None:
            return None
        if "held" in row:
            return float(row["held"])
        sealed, key_id = row.pop("sealed_key"), row.pop("sealing_key_id")
        api_key = self._open_key(_location(tenant, UUID(row["chain"])), sealed, key_id)
        ids = {name: UUID(row[name]) for name in ("id", "session", "chain")}
        names = ClaimedTurn.__dataclass_fields__.keys() - {
            "group",
            "parent",
            "tenant_name",
            "api_key",
        }
        return ClaimedTurn(
            **{name: row[name] for name in names} | ids,
            tenant_name=tenant_name,
            group=UUID(row["group_id"]),
            parent=UUID(row["parent"]) if row["parent"] else None,
            api_key=api_key,
        )

    async def save(
        self, turn: ClaimedTurn, messages: list[Any], calls: Sequence[str], requests: int
    ) -> bool:
        """Stores what was said so far; whether the turn is asked to stop. Raises `LostTurn`."""
        values = (messages, list(calls), requests, self._lease)
        return bool(await self._write("engine_save", turn, *values))

    async def renew(self, turns: Sequence[ClaimedTurn]) -> dict[UUID, bool]:
        """Prolongs leases. Returns the turns that are still held, and whether each shall stop."""
        rows = await self._db.fetch_rows(
            "engine_renew",
            [turn.tenant for turn in turns],
            [turn.id for turn in turns],
            [turn.epoch for turn in turns],
            self._lease,
        )
        return {row["id"]: row["stop_requested"] for row in rows}

    async def release(self, turn: ClaimedTurn) -> None:
        """Gives the turn back, for the next worker."""
        async with self._db.tenant_transaction(turn.tenant) as connection:
            await connection.fetch_rows("engine_release", turn.id, turn.epoch)

    async def end(
        self, turn: ClaimedTurn, status: str, outcome: str, error: str | None, content: str
    ) -> None:
        """Ends the turn with its answer, or lets it wait for a person. Raises `LostTurn`."""
        found = await self._db.call(
            "engine_end",
            turn.tenant,
            turn.id,
            turn.epoch,
            status,
            outcome,
            error,
            new_id(),
            content,
        )
        if not found:
            raise LostTurn

    async def load_ended(self, tenant: int, tenant_name: str, turn: UUID) -> EndedTurn | None:
        """A turn that is over, or waits; None if it goes on, or is unknown."""
        async with self._db.tenant_transaction(tenant) as connection:
            row = await connection.fetch_row("engine_ended", turn)
        return EndedTurn(tenant_name, **row) if row else None

    async def reserve(
        self, turn: ClaimedTurn, tokens: int, micro_usd: int, limits: Mapping[str, int | None]
    ) -> str | None:
        """Reserves tokens and money for one request; returns the limit that forbids it, if any."""
        exceeded: str | None = await self._db.call(
            "engine_reserve", turn.tenant, turn.id, turn.epoch, tokens, micro_usd, dict(limits)
        )
        if exceeded == "lost":
            raise LostTurn
        return exceeded

    async def count(self, turn: ClaimedTurn, tokens: int, micro_usd: int) -> None:
        """Counts tokens and money; negative ones give back what was reserved."""
        await self._db.call("engine_count", turn.tenant, turn.id, tokens, micro_usd)

    async def load_calls(self, turn: ClaimedTurn) -> tuple[list[str], list[str]]:
        """The tool calls of the turns that led to this one, and its own so far, oldest first."""
        async with self._db.tenant_reader(turn.tenant) as connection:
            rows = await connection.fetch_rows("engine_calls", turn.id)
        earlier = [call for row in rows if not row["is_own"] for call in row["calls"]]
        return earlier, [call for row in rows if row["is_own"] for call in row["calls"]]

    async def begin_effect(self, turn: ClaimedTurn, call: str, tool: str) -> tuple[bool, Any]:
        """Enters a call that changes something. Returns whether it is new, else its result.

        Raises `LostTurn`.
        """
        async with self._db.tenant_transaction(turn.tenant) as connection:
            row = await connection.fetch_row("engine_effect_begin", turn.id, call, tool, turn.epoch)
        if row is None:
            raise LostTurn
        return row["is_new"], row["result"]

    async def finish_effect(self, turn: ClaimedTurn, call: str, result: Any) -> None:
        """Stores the result of a call."""
        async with self._db.tenant_transaction(turn.tenant) as connection:
            await connection.fetch_rows("engine_effect_done", turn.id, call, {"value": result})

    async def ask(self, turn: ClaimedTurn, calls: Mapping[str, Any]) -> None:
        """Enters the calls that wait for a person. Raises `LostTurn`."""
        await self._write("engine_ask", turn, dict(calls))

    async def approve(
        self,
        tenant: tuple[int, str],
        group: UUID,
        turn: UUID,
        call: str,
        verdict: Mapping[str, Any],
    ) -> list[OutgoingEvent]:
        """Decides one call; the ticket of the turn once all are decided. Raises `NotFound`."""
        async with self._db.tenant_transaction(tenant[0]) as connection:
            approvals = await connection.fetch_value(
                "engine_approve", group, turn, call, dict(verdict)
            )
            if approvals is None:
                raise NotFound("call that waits", call)
            if any(entry.get("approved") is None for entry in approvals.values()):
                return []
            return [await self._resume(connection, tenant, turn)]

    async def stop(
        self, tenant: tuple[int, str], group: UUID, turn: UUID | None
    ) -> tuple[list[UUID], list[OutgoingEvent]]:
        """Asks open turns to stop; returns them, and the tickets of those that waited."""
        async with self._db.tenant_transaction(tenant[0]) as connection:
            rows = await connection.fetch_rows("engine_stop", group, turn)
            tickets = [
                await self._resume(connection, tenant, row["id"])
                for row in rows
                if row["status"] == "waiting"
            ]
        return [row["id"] for row in rows], tickets

    def _open_key(
        self, location: SecretLocation, sealed: str | None, key_id: str | None
    ) -> str | None:
        """The author's key; None if it is gone, or was sealed under a master key that is."""
        if sealed is None or key_id is None:
            return None
        try:
            return str(self._cipher.decrypt(location, base64.b64decode(sealed), key_id))
        except Unavailable:
            return None

    async def _resume(self, connection: Any, tenant: tuple[int, str], turn: UUID) -> OutgoingEvent:
        event = new_id()
        await connection.fetch_rows("engine_resume", turn)
        await connection.fetch_rows("engine_enqueue", tenant[1], turn, event, {})
        return _ticket(tenant, turn, event, {})

    async def _write(self, name: str, turn: ClaimedTurn, *values: Any) -> Any:
        async with self._db.tenant_transaction(turn.tenant) as connection:
            row = await connection.fetch_row(name, turn.id, turn.epoch, *values)
        if row is None:
            raise LostTurn
        return row[0]


def _location(tenant: int, chain: UUID) -> SecretLocation:
    return SecretLocation(tenant, "engine", str(chain))


def _ticket(
    tenant: tuple[int, str], turn: UUID, event: UUID, headers: Mapping[str, str]
) -> OutgoingEvent:
    subject = turn_subject(tenant[1], turn)
    return build_outgoing_event(tenant[0], subject, {"turn": str(turn)}, headers, event)
