"""What happens around each step of a turn, as capabilities of pydantic-ai.

`TurnMemory` shows recalled memory, `TurnSteps` stores each step and streams it, `TurnBudget` keeps
the limits of money, `TurnTools` guards each tool call and ends a turn that repeats its calls.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage

from reverie.domain.core.errors import ReverieError
from reverie_services.engine.redaction import clean_text
from reverie_services.engine.turn_state import Cost, TurnState
from reverie_services.engine.turns.window import count_tokens, shrink_turn

PARALLEL_READS = 4
MAX_BLOCK = 4
"""The longest block of calls that is compared."""
REPEATS = 3
"""How often in a row a block must occur."""
MAX_RESULT_CHARS = 20_000
_MAX_READ_CHARS = 10 * MAX_RESULT_CHARS
"""Characters of a result that are redacted before it is cut: a megabyte would hold up others."""
UNKNOWN_EFFECT = (
    "The worker that made this call died before it knew the result. The call may have taken effect."
    " It was not made again. Check what is there before you repeat it."
)


class RepeatedCalls(Exception):
    """The same calls came again and again."""

    def __init__(self, block: Sequence[str]) -> None:
        self.tools = [call.partition(":")[0] for call in block]
        super().__init__(", ".join(self.tools))


class SpendExceeded(Exception):
    """A limit of tokens or money forbids the next request."""

    def __init__(self, limit: str) -> None:
        self.limit = limit
        super().__init__(limit)


class StopRequested(Exception):
    """A person asked the turn to stop."""


@dataclass
class TurnMemory(AbstractCapability[TurnState]):
    """Adds recalled memory to what the model sees, and keeps the turn within the window.

    Nothing of it enters the stored messages: it is recalled anew for each turn.
    """

    async def before_model_request(self, ctx: RunContext[TurnState], request_context: Any) -> Any:
        state = ctx.deps
        messages = list(request_context.messages)
        asked = state.base - 1
        request = messages[asked]
        if state.memory and isinstance(request, ModelRequest):
            parts = [*request.parts, UserPromptPart(state.memory)]
            messages[asked] = replace(request, parts=parts)
        messages[state.base :] = shrink_turn(messages[state.base :], state.window_tokens)
        return replace(request_context, messages=messages)


@dataclass
class TurnSteps(AbstractCapability[TurnState]):
    """Streams what the model says, and stores the messages after every response and tool round."""

    async def before_model_request(self, ctx: RunContext[TurnState], request_context: Any) -> Any:
        state = ctx.deps
        if state.stop_requested:
            raise StopRequested
        state.requests += 1
        state.has_streamed = False
        state.emitter.begin_step(state.requests)
        return request_context

    async def after_node_run(self, ctx: RunContext[TurnState], *, node: Any, result: Any) -> Any:
        own = list(ctx.messages[ctx.deps.base :])
        following = getattr(result, "request", None)
        if isinstance(following, ModelRequest) and own and following is not own[-1]:
            own.append(following)
        if len(own) > len(ctx.deps.stored):
            await ctx.deps.save(own)
        return result

    async def on_event(self, ctx: RunContext[TurnState], *, event: Any) -> None:
        emitter, state = ctx.deps.emitter, ctx.deps
        match event:
            case PartStartEvent(part=TextPart() | ThinkingPart() as part):
                state.has_streamed = True
                emitter.add_delta(_delta_kind(part), part.content)
            case PartDeltaEvent(delta=TextPartDelta() as delta):
                emitter.add_delta("text_delta", delta.content_delta)
            case PartDeltaEvent(delta=ThinkingPartDelta() as delta):
                emitter.add_delta("thinking_delta", delta.content_delta or "")
            case PartEndEvent(part=TextPart() | ThinkingPart() as part):
                emitter.add_delta(_delta_kind(part), "", is_last=True)
            case FunctionToolCallEvent(part=call):
                arguments = clean_text(call.args_as_json_str(), emitter.redactor)
                data = {"call": call.tool_call_id, "tool": call.tool_name, "arguments": arguments}
                emitter.emit("tool_call", data)
            case FunctionToolResultEvent(part=part):
                text = clean_text(str(part.content), emitter.redactor)[:MAX_RESULT_CHARS]
                data = {"call": part.tool_call_id, "tool": part.tool_name, "content": text}
                emitter.emit("tool_result", data)


def _delta_kind(part: TextPart | ThinkingPart) -> str:
    return "text_delta" if isinstance(part, TextPart) else "thinking_delta"


@dataclass
class TurnBudget(AbstractCapability[TurnState]):
    """Reserves what a request may cost before it is made, and counts what it did cost.

    `models`: those that may answer; the dearest of them is reserved for.
    """

    limits: dict[str, int | None]
    max_output_tokens: int
    models: Sequence[Model]

    async def before_model_request(self, ctx: RunContext[TurnState], request_context: Any) -> Any:
        state = ctx.deps
        reserved = self._estimate(request_context.messages, self.max_output_tokens)
        if limit := await state.turns.reserve(state.turn, *reserved, self.limits):
            raise SpendExceeded(limit)
        state.reserved = reserved
        return request_context

    async def wrap_model_request(
        self, ctx: RunContext[TurnState], *, request_context: Any, handler: Any
    ) -> ModelResponse:
        """Gives back what a request that fails or is stopped did not use."""
        state = ctx.deps
        try:
            response: ModelResponse = await handler(request_context)
        finally:
            reserved, state.reserved = state.reserved, Cost(0, 0)
            if reserved.tokens:
                said = len(state.emitter.text) // 4
                messages = request_context.messages
                used = self._estimate(messages, said) if state.has_streamed else Cost(0, 0)
                await asyncio.shield(_settle(state, used, reserved))
        return response

    async def after_model_request(
        self, ctx: RunContext[TurnState], *, request_context: Any, response: ModelResponse
    ) -> ModelResponse:
        state, usage = ctx.deps, response.usage
        micro_usd = _price(response)
        used = Cost(usage.input_tokens + usage.output_tokens, micro_usd)
        reserved, state.reserved = state.reserved, Cost(0, 0)
        await _settle(state, used, reserved)
        data: dict[str, Any] = {"input_tokens": usage.input_tokens}
        data |= {"output_tokens": usage.output_tokens}
        data |= {"micro_usd": micro_usd, "model": response.model_name}
        state.emitter.emit("usage", data)
        return response

    def _estimate(self, messages: Sequence[ModelMessage], output_tokens: int) -> Cost:
        input_tokens = count_tokens(messages)
        usage = RequestUsage(input_tokens=input_tokens, output_tokens=output_tokens)
        prices = [
            _price(
                ModelResponse(
                    parts=[],
                    usage=usage,
                    model_name=model.model_name,
                    provider_name=model.system,
                    provider_url=model.base_url,
                )
            )
            for model in self.models
        ]
        return Cost(input_tokens + output_tokens, max(prices, default=0))


async def _settle(state: TurnState, used: Cost, reserved: Cost) -> None:
    tokens, micro_usd = used.tokens - reserved.tokens, used.micro_usd - reserved.micro_usd
    await state.turns.count(state.turn, tokens, micro_usd)


def _price(response: ModelResponse) -> int:
    """Millionths of a dollar; 0 for a model without a known price, as a local one."""
    try:
        return round(response.cost().total_price * 1_000_000)
    except (LookupError, ValueError, AssertionError):
        return 0


@dataclass
class TurnTools(AbstractCapability[TurnState]):
    """Guards tool calls: repetition, approval, and effects that happen once."""

    ask: frozenset[str]
    _reads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARALLEL_READS))

    async def wrap_tool_execute(
        self, ctx: RunContext[TurnState], *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        state, tool = ctx.deps, call.tool_name
        metadata = tool_def.metadata or {}
        if {tool, metadata.get("server")} & self.ask and not ctx.tool_call_approved:
            raise ApprovalRequired
        state.calls.append(sign_call(tool, args))
        if block := find_repetition([*state.earlier_calls, *state.calls]):
            raise RepeatedCalls(block)
        if not metadata.get("changes"):
            async with self._reads:
                return await _call(state, handler, args)
        return await self._run_once(state, call, metadata, args, handler)

    async def _run_once(
        self, state: TurnState, call: Any, metadata: Any, args: Any, handler: Any
    ) -> Any:
        """Runs a call that changes something, unless it ran or may have run before."""
        is_new, stored = await state.turns.begin_effect(
            state.turn, call.tool_call_id, call.tool_name
        )
        if not is_new and stored is not None:
            return stored["value"]
        if not is_new and not metadata.get("repeatable"):
            state.emitter.emit("notice", {"what": "effect_unknown", "call": call.tool_call_id})
            return UNKNOWN_EFFECT
        result = await _call(state, handler, args)
        await state.turns.finish_effect(state.turn, call.tool_call_id, result)
        return result


async def _call(state: TurnState, handler: Any, args: Any) -> str:
    """The result of a tool, or the reason of its failure, for the model to read."""
    try:
        result = str(await handler(args))[:_MAX_READ_CHARS]
    except (ReverieError, OSError, ValueError) as error:
        result = f"failed: {error}"
    # Redacted first: a credential that is cut in two is not found.
    return clean_text(result, state.emitter.redactor)[:MAX_RESULT_CHARS]


def sign_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """A short name for a call: equal for equal arguments, whatever their order."""
    text = json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
    return f"{tool}:{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


def find_repetition(calls: Sequence[str]) -> Sequence[str] | None:
    """The block that the calls end with `REPEATS` times in a row; None if there is none."""
    for length in range(1, MAX_BLOCK + 1):
        if len(calls) < length * REPEATS:
            return None
        block = list(calls[-length:])
        if list(calls[-length * REPEATS :]) == block * REPEATS:
            return block
    return None
