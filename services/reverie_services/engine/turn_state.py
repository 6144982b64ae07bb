"""What a turn knows while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from reverie.client.async_client import AsyncReverie
from reverie.store.engine.turns import ClaimedTurn, TurnTable
from reverie_services.engine.events import TurnEmitter
from reverie_services.engine.redaction import redact_messages
from reverie_services.engine.workspace import Workspace


class Cost(NamedTuple):
    """Tokens, and millionths of a dollar."""

    tokens: int
    micro_usd: int


@dataclass
class TurnState:
    """What a turn knows while it runs.

    `base`: how many messages come before its own. `memory`: what was recalled for it, shown as the
    last user-role part of what is asked. `calls`: signatures of its tool calls. `sources`: what its
    tools work on.
    """

    turn: ClaimedTurn
    turns: TurnTable
    emitter: TurnEmitter
    base: int = 0
    memory: str = ""
    window_tokens: int = 0
    calls: list[str] = field(default_factory=list)
    earlier_calls: list[str] = field(default_factory=list)
    requests: int = 0
    reserved: Cost = field(default_factory=lambda: Cost(0, 0))
    stop_requested: bool = False
    has_streamed: bool = False
    stored: list[ModelMessage] = field(default_factory=list)
    sources: ToolSources = field(init=False)

    async def save(self, messages: Sequence[ModelMessage]) -> None:
        """Stores the messages of this turn. Raises `LostTurn`."""
        self.stored = redact_messages(messages, self.emitter.redactor)
        dumped = ModelMessagesTypeAdapter.dump_python(self.stored, mode="json")
        stop = await self.turns.save(self.turn, dumped, self.calls, self.requests)
        self.stop_requested |= stop


Ctx = RunContext[TurnState]
HandOn = Callable[[Ctx, str, str], Awaitable[str]]


@dataclass(frozen=True)
class ToolSources:
    """What tools work on: memory by the author's key, how work is handed on, and files."""

    reverie: AsyncReverie
    hand_on: HandOn
    files: Workspace | None = None
