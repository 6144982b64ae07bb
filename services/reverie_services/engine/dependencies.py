"""Dependencies of the engine, one small record for each feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_ai.models import Model

from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher
from reverie.client.async_client import AsyncReverie
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.inference.chat_models import ChatModels
from reverie.mcp.tool_servers import ToolServer
from reverie.store.engine.conversations import ConversationTables
from reverie.store.engine.turns import ChainLimits, TurnTable
from reverie_services.engine.events import GroupWatchers
from reverie_services.engine.leases import TurnLeases
from reverie_services.engine.memory_call_limit import MemoryCallLimit
from reverie_services.engine.metrics import EngineMetrics
from reverie_services.engine.tools.toolset import list_tool_names

OpenMemory = Callable[[str], AbstractAsyncContextManager[AsyncReverie]]
"""Opens a client of the gateway with a key."""
ModelFactory = Callable[[str, str | None], Model]
"""Creates the named model, with its own key or one of the tenant's vault."""


@dataclass(frozen=True)
class EngineSettings:
    """Settings of the engine. A limit of 0 is no limit; money is in millionths of a dollar."""

    worker: str
    folder: Path | None
    extra_tools: frozenset[str]
    concurrency: int
    message_bytes: int
    lease_seconds: float
    daily_tokens: int
    daily_micro_usd: int
    chain_tokens: int
    chain_micro_usd: int
    servers: Mapping[str, ToolServer] = field(default_factory=dict)
    chain: ChainLimits = field(default_factory=ChainLimits)

    @property
    def tool_names(self) -> list[str]:
        """The tools of the engine itself that are there."""
        return list_tool_names(self.folder is not None, self.extra_tools)

    def spend_limits(
        self, agent_tokens: int | None, agent_usd: float | None
    ) -> dict[str, int | None]:
        """The limits that a request of an agent must keep."""
        usd = None if agent_usd is None else round(agent_usd * 1_000_000)
        return {
            "tenant_tokens": self.daily_tokens or None,
            "tenant_micro_usd": self.daily_micro_usd or None,
            "agent_tokens": agent_tokens,
            "agent_micro_usd": usd,
            "chain_tokens": self.chain_tokens or None,
            "chain_micro_usd": self.chain_micro_usd or None,
        }


@dataclass(frozen=True)
class ConversationDependencies:
    """For the routes."""

    settings: EngineSettings
    conversations: ConversationTables
    turns: TurnTable
    publisher: EventPublisher
    bus: MessageBus
    watchers: GroupWatchers
    models: ChatModels
    open_memory: OpenMemory


@dataclass(frozen=True)
class TurnDependencies:
    """For a worker."""

    settings: EngineSettings
    conversations: ConversationTables
    turns: TurnTable
    publisher: EventPublisher
    bus: MessageBus
    models: ChatModels
    create_model: ModelFactory
    open_memory: OpenMemory
    load_redactor: RedactorLoader
    metrics: EngineMetrics
    leases: TurnLeases
    memory_limit: MemoryCallLimit = field(default_factory=MemoryCallLimit)
