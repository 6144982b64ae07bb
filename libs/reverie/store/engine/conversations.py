"""Stores agents, groups, and what was said in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound
from reverie.store.db.database import Database


@dataclass(frozen=True)
class AgentGroup:
    """Several agents in one conversation; the first is the default one."""

    id: UUID
    name: str
    session: UUID
    scope: str
    project: str | None
    agents: list[str]
    answers: str
    created: datetime


@dataclass(frozen=True)
class GroupMessage:
    """What a user or an agent said; an agent's answer names its turn."""

    no: int
    id: UUID
    author: str
    content: str
    images: list[UUID]
    turn: UUID | None
    at: datetime


@dataclass(frozen=True)
class HistoryMessage(GroupMessage):
    """The same, with the model's messages of the turn that said it, if it is the agent's own."""

    messages: list[Any] | None


@dataclass(frozen=True)
class StoredImage:
    """An image of a message."""

    id: UUID
    media_type: str
    data: bytes


@dataclass(frozen=True)
class GroupTurn:
    """A turn as it is listed."""

    id: UUID
    chain: UUID
    parent: UUID | None
    depth: int
    agent: str
    mode: str
    status: str
    attempts: int
    requests: int
    tokens: int
    micro_usd: int
    outcome: str | None
    error: str | None
    created: datetime
    ended: datetime | None
    waits: Mapping[str, Any]


class ConversationTables:
    """Agents and groups of all tenants.

    What each turn reads is read over the connections of readers, without a transaction around it.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get_tenant_name(self, tenant: int) -> str | None:
        """The name of a tenant; None if it was deleted."""
        async with self._db.tenant_reader(tenant) as connection:
            found: str | None = await connection.fetch_value("tenant_name")
        return found

    async def put_agent(self, tenant: int, name: str, spec: Mapping[str, Any]) -> None:
        """Creates or replaces an agent."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("engine_agent_put", name, dict(spec))

    async def list_agents(self, tenant: int) -> dict[str, dict[str, Any]]:
        """The stored agents by name."""
        async with self._db.tenant_reader(tenant) as connection:
            rows = await connection.fetch_rows("engine_agent_list")
        return {row["name"]: row["spec"] for row in rows}

    async def delete_agent(self, tenant: int, name: str) -> None:
        """Deletes an agent. Raises `NotFound`."""
        async with self._db.tenant_transaction(tenant) as connection:
            if not await connection.fetch_value("engine_agent_delete", name):
                raise NotFound("agent", name)

    async def add_group(self, tenant: int, group: AgentGroup) -> None:
        """Stores a new group."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows(
                "engine_group_add",
                group.id,
                group.name,
                group.session,
                group.scope,
                group.project,
                group.agents,
                group.answers,
            )

    async def list_groups(
        self, principal: Principal, below: UUID | None, limit: int
    ) -> list[AgentGroup]:
        """Groups that the key may read, newest first; a key of an agent sees its own."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            rows = await connection.fetch_rows(
                "engine_group_list", list(principal.reads), principal.agent, below, limit
            )
        return [AgentGroup(**row) for row in rows]

    async def get_group(self, principal: Principal, group: UUID) -> AgentGroup:
        """A group that the key may read. Raises `NotFound`."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            row = await connection.fetch_row(
                "engine_group_get", group, list(principal.reads), principal.agent
            )
        if row is None:
            raise NotFound("group", str(group))
        return AgentGroup(**row)

    async def list_messages(
        self, tenant: int, group: UUID, after: int, before: int | None, limit: int
    ) -> list[GroupMessage]:
        """What was said after the message `after`, oldest first.

        With `before` it is what was said last before that message; 0 is the end.
        """
        async with self._db.tenant_transaction(tenant) as connection:
            if before is None:
                rows = await connection.fetch_rows("engine_message_list", group, after, limit)
            else:
                args = (group, before or None, limit)
                rows = await connection.fetch_rows("engine_message_list_back", *args)
        return [GroupMessage(**row) for row in rows]

    async def load_history(
        self, tenant: int, group: UUID, upto: int, limit: int, agent: str
    ) -> list[HistoryMessage]:
        """The last messages of a group up to `upto`, as this agent knows them."""
        async with self._db.tenant_reader(tenant) as connection:
            rows = await connection.fetch_rows("engine_history", group, upto, limit, agent)
        return [HistoryMessage(**row) for row in rows]

    async def load_images(self, tenant: int, ids: Sequence[UUID]) -> dict[UUID, StoredImage]:
        """Images by their ids."""
        async with self._db.tenant_transaction(tenant) as connection:
            rows = await connection.fetch_rows("engine_image_get", list(ids))
        return {row["id"]: StoredImage(**row) for row in rows}

    async def get_image(self, tenant: int, group: UUID, image: UUID) -> StoredImage:
        """An image of a group. Raises `NotFound`."""
        async with self._db.tenant_transaction(tenant) as connection:
            row = await connection.fetch_row("engine_group_image", group, image)
        if row is None:
            raise NotFound("image", str(image))
        return StoredImage(**row)

    async def put_content(self, tenant: int, message: UUID, old: str, content: str) -> bool:
        """Replaces the text of a message; False if it was changed meanwhile, as by erasing."""
        async with self._db.tenant_transaction(tenant) as connection:
            return bool(await connection.fetch_rows("engine_message_put", message, old, content))

    async def list_turns(self, tenant: int, group: UUID, limit: int) -> list[GroupTurn]:
        """The newest turns of a group."""
        async with self._db.tenant_transaction(tenant) as connection:
            rows = await connection.fetch_rows("engine_turn_list", group, limit)
        return [GroupTurn(**row) for row in rows]

    async def sweep(self, seconds: float) -> int:
        """Forgets how older turns of all tenants came about; returns their number."""
        return int(await self._db.call("engine_sweep", timedelta(seconds=seconds)))

    async def load_spend(self, tenant: int) -> dict[str, tuple[int, int]]:
        """What was spent today (UTC), by agent: tokens, and millionths of a dollar."""
        async with self._db.tenant_transaction(tenant) as connection:
            rows = await connection.fetch_rows("engine_spend_today")
        return {row["agent"]: (row["tokens"], row["micro_usd"]) for row in rows}
