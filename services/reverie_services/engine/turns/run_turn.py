"""Runs one turn: recalls, calls the model and its tools step by step, and remembers what was said.

It resumes from what a worker that died has stored: messages of the model, effects of tools,
decisions of people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid5

import structlog
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.capabilities import AbstractCapability, Caching, ModelFallback
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelContextWindowExceededError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import UsageLimits

from reverie.client.async_client import AsyncReverie
from reverie.contracts.engine import AgentBody
from reverie.contracts.memories.memories import RememberResponse
from reverie.domain.core.errors import InvalidInput, ReverieError
from reverie.domain.redaction.redactor import Redactor
from reverie.inference.chat_models import ChatEndpoint
from reverie.store.engine.conversations import HistoryMessage, StoredImage
from reverie.store.engine.turns import ClaimedTurn, NewTurns
from reverie_services.engine.attachments import (
    has_undescribed,
    insert_descriptions,
    leave_attachments,
)
from reverie_services.engine.dependencies import TurnDependencies
from reverie_services.engine.events import TurnEmitter
from reverie_services.engine.prompts import build_static_prompt
from reverie_services.engine.redaction import clean_text
from reverie_services.engine.tools.server_tools import open_server_tools
from reverie_services.engine.tools.toolset import build_toolset, choose_tools
from reverie_services.engine.turn_state import Ctx, ToolSources, TurnState
from reverie_services.engine.turns.capabilities import (
    SpendExceeded,
    TurnBudget,
    TurnMemory,
    TurnSteps,
    TurnTools,
)
from reverie_services.engine.turns.results import TurnResult, end_by_failure, falls_back
from reverie_services.engine.turns.side_requests import describe_images, summarize
from reverie_services.engine.turns.stored_messages import (
    answer_text,
    cut_to_bytes,
    is_answered,
    is_open,
)
from reverie_services.engine.turns.window import WINDOW_TOKENS, WINDOW_TURNS, build_window
from reverie_services.engine.workspace import Workspace

MAX_IMAGES = 20
"""The newest images of a conversation that are loaded; more would not fit into the window."""
MAX_CONTINUATIONS = 3
"""How often an answer that met max_tokens is continued."""
WINDOW_STEPS = (WINDOW_TOKENS, WINDOW_TOKENS // 2, WINDOW_TOKENS // 4)
"""The windows that are tried when a model refuses the context as too long; then a summary."""
_CONTINUE = {"en": "Go on exactly where you stopped.", "zh": "从停下的地方接着说。"}

log = structlog.get_logger("reverie.engine")


@dataclass
class TurnRun:
    """One attempt at a turn, by one worker."""

    deps: TurnDependencies
    turn: ClaimedTurn
    spec: AgentBody
    state: TurnState
    redactor: Redactor
    reverie: AsyncReverie
    servers: Sequence[AbstractToolset[TurnState]] = ()

    async def run(self) -> TurnResult:
        """Runs the turn to its end. Raises `LostTurn`, and what the store raises."""
        turn, state, settings = self.turn, self.state, self.deps.settings
        files = Workspace.of_tenant(settings.folder, turn.tenant) if settings.folder else None
        state.sources = ToolSources(self.reverie, self.hand_on, files)
        state.stored = list(ModelMessagesTypeAdapter.validate_python(turn.messages))
        async with self.deps.memory_limit.slot():
            state.earlier_calls, state.calls = await self.deps.turns.load_calls(turn)
            history = await self.deps.conversations.load_history(
                turn.tenant, turn.group, turn.seen, WINDOW_TURNS * 2, turn.agent
            )
            # The user's message is in the session before the answers to it.
            asked = [entry for entry in history if entry.id == turn.chain]
            await self._append([("user", entry.content, str(entry.id)) for entry in asked])
            await self._recall(history)
        try:
            async with open_server_tools(
                settings.servers, self._server_names(), self.reverie, state.emitter
            ) as self.servers:
                result = await self._converse(history)
        except Exception as error:
            result = end_by_failure(error, state.emitter.text if state.has_streamed else "")
        if result.status == "done":
            async with self.deps.memory_limit.slot():
                await self._remember_answer(history, result)
            await self._describe_images(history)
        return result

    async def _recall(self, history: Sequence[HistoryMessage]) -> None:
        """Calls preflow for the memories of this turn. The turn goes on without an answer."""
        question = self.turn.task or (history[-1].content if history else "")
        try:
            found = await self.reverie.preflow(self.turn.session, question, include_seen=True)
        except ReverieError as error:
            self.state.emitter.emit("notice", {"what": "memory_unavailable", "why": str(error)})
            return
        self.state.memory = found.markdown
        ids = [str(item.id) for item in found.items if item.id]
        data = {"tokens": found.tokens, "memories": ids, "trace": found.trace_id}
        self.state.emitter.emit("memory", data | {"degraded": found.degraded})

    async def _converse(self, history: Sequence[HistoryMessage]) -> TurnResult:
        """Calls the model until it has answered; too long a context gets a smaller window."""
        image_ids = [id for entry in history for id in entry.images][-MAX_IMAGES:]
        images = await self._load_images(image_ids if self._can_see() else [])
        for tokens in WINDOW_STEPS:
            window = build_window(history, self.turn.agent, self.turn.task, images, tokens)
            try:
                return await self._answer(window, tokens)
            except ModelContextWindowExceededError:
                self.state.emitter.emit("notice", {"what": "context_reduced", "tokens": tokens})
        full = build_window(history, self.turn.agent, self.turn.task, images)
        model, *_ = models = await self._models()
        budget, language = self._budget(models), self.spec.language
        size = 2 * WINDOW_STEPS[-1]
        summary = await summarize(model, budget, self.state, language, full[:-1], size)
        parts = [UserPromptPart(summary), *full[-1].parts[-1:]]
        return await self._answer([ModelRequest(parts=parts)], WINDOW_STEPS[-1])

    async def _answer(self, base: list[ModelMessage], window_tokens: int) -> TurnResult:
        state = self.state
        state.base, state.window_tokens = len(base), window_tokens
        agent = await self._build_agent()
        approvals = self._read_approvals()
        for _ in range(MAX_CONTINUATIONS + 1):
            if not is_answered(state.stored):
                # Those before a person decided, or a worker died, are requests of this turn, too.
                left = max(0, self.spec.budget.requests_per_turn - state.requests)
                result = await agent.run(
                    message_history=[*base, *state.stored],
                    deps=state,
                    deferred_tool_results=approvals,
                    usage_limits=UsageLimits(request_limit=left),
                )
                approvals = None
                await state.save(result.all_messages()[len(base) :])
                if isinstance(result.output, DeferredToolRequests):
                    return await self._wait(result.output)
            last = state.stored[-1]
            if not (isinstance(last, ModelResponse) and last.finish_reason == "length"):
                return TurnResult("done", "end_turn", answer_text(state.stored))
            more = ModelRequest(parts=[UserPromptPart(_CONTINUE[self.spec.language])])
            await state.save([*state.stored, more])
        return TurnResult("done", "max_tokens", answer_text(state.stored[:-1]))

    async def _build_agent(self) -> Agent[TurnState, str | DeferredToolRequests]:
        spec, turn, settings = self.spec, self.turn, self.deps.settings
        first, *fallbacks = models = await self._models()
        tools = choose_tools(settings.tool_names, turn.mode, spec.tools)
        capabilities: list[AbstractCapability[TurnState]] = [
            self.deps.metrics.instrumentation,
            Caching(),
            TurnMemory(),
            TurnSteps(),
            self._budget(models),
            TurnTools(frozenset(spec.ask)),
        ]
        if fallbacks:
            capabilities.append(ModelFallback(*fallbacks, fallback_on=falls_back))
        return Agent(
            first,
            output_type=[str, DeferredToolRequests],
            deps_type=TurnState,
            instructions=build_static_prompt(
                turn.agent,
                spec.language,
                spec.persona,
                turn.mode,
                [name for name in turn.agents if name != turn.agent],
                [*tools, *(f"{server}_*" for server in self._server_names())],
            ),
            toolsets=[build_toolset(self.servers, turn.mode, tools)],
            capabilities=capabilities,
            model_settings=ModelSettings(max_tokens=self._max_output_tokens()),
        )

    async def _load_images(self, ids: Sequence[UUID]) -> Mapping[UUID, StoredImage]:
        return await self.deps.conversations.load_images(self.turn.tenant, ids) if ids else {}

    def _can_see(self) -> bool:
        """Whether each model of the agent takes images, fallbacks included."""
        return all(endpoint.sees for endpoint in self._endpoints())

    def _server_names(self) -> list[str]:
        """The MCP servers of the agent; none in dream mode."""
        return [] if self.turn.mode == "dream" else self.spec.servers

    async def _models(self) -> list[Model]:
        endpoints = self.deps.models.endpoints
        names = [name for name in self.spec.models if name in endpoints]
        if not names:
            raise InvalidInput("models", f"none is called {', '.join(self.spec.models)}")
        models = []
        for name in names:
            entry = endpoints[name].vault
            key = str((await self.reverie.vault_get(entry)).value) if entry else None
            models.append(self.deps.create_model(name, key))
        return models

    def _budget(self, models: Sequence[Model]) -> TurnBudget:
        budget = self.spec.budget
        limits = self.deps.settings.spend_limits(budget.tokens_per_day, budget.usd_per_day)
        return TurnBudget(limits, self._max_output_tokens(), models)

    def _max_output_tokens(self) -> int:
        known = self._endpoints()
        return known[0].max_output_tokens if known else 0

    def _endpoints(self) -> list[ChatEndpoint]:
        endpoints = self.deps.models.endpoints
        return [endpoints[name] for name in self.spec.models if name in endpoints]

    def _read_approvals(self) -> DeferredToolResults | None:
        decided = {
            call: ToolApproved()
            if entry["approved"]
            else ToolDenied(entry.get("reason") or "denied")
            for call, entry in self.turn.approvals.items()
            if entry.get("approved") is not None and is_open(self.state.stored, call)
        }
        return DeferredToolResults(approvals=dict(decided)) if decided else None

    async def _wait(self, requests: DeferredToolRequests) -> TurnResult:
        calls = {
            call.tool_call_id: {
                "tool": call.tool_name,
                "arguments": clean_text(call.args_as_json_str(), self.redactor),
            }
            for call in requests.approvals
        }
        await self.deps.turns.ask(self.turn, calls)
        return TurnResult("waiting", "approval", waits=calls)

    async def hand_on(self, ctx: Ctx, agent: str, task: str) -> str:
        """Gives a task to another agent of the group; the limits of the chain may forbid it."""
        turn = self.turn
        if agent == turn.agent:
            return "failed: you cannot hand on to yourself"
        if agent not in turn.agents:
            return f"failed: {agent} is not in this group: {', '.join(turn.agents)}"
        clean = clean_text(f"[{turn.agent}, to you] {task}", self.redactor)
        # The next turn also compares the calls that led to it, this one included.
        await self.state.save(self.state.stored)
        turns = NewTurns([agent], [uuid5(turn.id, ctx.tool_call_id or "")], turn.mode)
        limit, tickets = await self.deps.turns.hand_on(turn, turns, clean, self.deps.settings.chain)
        if limit:
            self.state.emitter.emit("notice", {"what": "chain_limit", "limit": limit, "to": agent})
            return f"failed: the chain of this message is too long ({limit}); answer yourself"
        # Before the ticket, so that a watcher knows of the turn before this one ends.
        self.state.emitter.emit_hand_over(agent, turns.ids[0])
        await self.deps.publisher.publish(turn.tenant, tickets)
        return f"{agent} has it"

    async def _remember_answer(self, history: Sequence[HistoryMessage], result: TurnResult) -> None:
        """Appends the answer to the session, corrects memories by the user's words, keeps a plan.

        Each call has a key of its own, so that another worker can repeat it.
        """
        turn = self.turn
        if not result.content:
            return
        name = f"{turn.agent}: " if len(turn.agents) > 1 else ""
        await self._append([("assistant", f"{name}{result.content}", str(turn.id))])
        try:
            if turn.mode == "plan":
                await self._remember_plan(result.content)
            if turn.is_first and history:
                said = [{"role": "user", "content": leave_attachments(history[-1].content)}]
                await self.reverie.correct_memories(turn.session, messages=said)
        except ReverieError as error:
            log.info("remembering_incomplete", error=type(error).__name__)

    async def _describe_images(self, history: Sequence[HistoryMessage]) -> None:
        """Adds descriptions of the images to the message, for memory and models without vision.

        Only the first turn does, after its answer; a failure leaves the message as it was.
        """
        turn, state = self.turn, self.state
        asked = next((entry for entry in history if entry.id == turn.chain), None)
        if not (turn.is_first and asked and has_undescribed(asked.content) and self._can_see()):
            return
        try:
            images = await self._load_images(asked.images)
            model, *_ = models = await self._models()
            budget, shown = self._budget(models), [images[id] for id in asked.images]
            lines = await describe_images(model, budget, state, self.spec.language, shown)
            text = clean_text(insert_descriptions(asked.content, lines), self.redactor)
            conversations = self.deps.conversations
            if not await conversations.put_content(turn.tenant, asked.id, asked.content, text):
                return
            said = clean_text("\n".join(lines), self.redactor)
            await self._append([("assistant", f"[images] {said}", f"{asked.id}.images")])
        except (ReverieError, SpendExceeded, AgentRunError, KeyError) as error:
            log.info("images_not_described", error=type(error).__name__)

    async def _append(self, messages: Sequence[tuple[str, str, str]]) -> None:
        limit = self.deps.settings.message_bytes
        turns = [
            # A session takes no longer turns; the whole text stays in the conversation.
            {"role": role, "content": cut_to_bytes(content, limit), "external_id": id}
            for role, content, id in messages
            if content.strip()
        ]
        if turns:
            await self.reverie.append_turns(self.turn.session, turns)

    async def _remember_plan(self, plan: str) -> None:
        turn = self.turn
        body: dict[str, Any] = {
            "content": plan[:20_000],
            "kind": "spec",
            "key": f"plan-{turn.group}",
            "supersede_reason": "a newer plan",
            "tags": ["plan"],
            "session": str(turn.session),
        }
        headers = {"Idempotency-Key": str(uuid5(turn.id, "plan"))}
        await self.reverie.request(
            RememberResponse, "POST", "/v1/remember", body=body, headers=headers
        )


def new_state(deps: TurnDependencies, turn: ClaimedTurn, emitter: TurnEmitter) -> TurnState:
    """The state of a turn that begins, or goes on."""
    return replace(TurnState(turn, deps.turns, emitter), requests=turn.requests)
