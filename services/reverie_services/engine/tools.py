"""The tools of agents. Each says whether it changes something, and where it may be used.

`changes`: its effect is entered in the ledger before it happens. `repeatable`: made again, it has
its effect once, because it carries a key of its own. `memory`: dreams may use it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid5

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from reverie.client.async_client import AsyncReverie
from reverie.contracts.memories import RememberResponse
from reverie_services.engine.capabilities import TurnState
from reverie_services.engine.workspace import Workspace, fetch_page

Ctx = RunContext[TurnState]
READ: dict[str, Any] = {}
MEMORY_READ: dict[str, Any] = {"memory": True}
MEMORY_CHANGE: dict[str, Any] = {"memory": True, "changes": True, "repeatable": True}
CHANGE: dict[str, Any] = {"changes": True}
HAND_ON: dict[str, Any] = {"changes": True, "repeatable": True}

HandOn = Callable[[Ctx, str, str], Awaitable[str]]


@dataclass
class ToolSources:
    """What tools work on: memory by the author's key, files, and how work is handed on."""

    reverie: AsyncReverie
    hand_on: HandOn
    files: Workspace | None = None
    extra: Collection[str] = field(default_factory=frozenset)


def build_toolset(
    sources: ToolSources, mode: str, allowed: Collection[str] | None
) -> AbstractToolset[TurnState]:
    """The tools of a mode: all, those that only read (plan), or those of memory (dream)."""
    toolset = FunctionToolset[TurnState](max_retries=2)
    _add_memory_tools(toolset, sources.reverie)
    _add_group_tools(toolset, sources)
    if sources.files is not None:
        _add_file_tools(toolset, sources.files)
    if "web_fetch" in sources.extra:
        toolset.add_function(_fetch, name="web_fetch", metadata=READ)

    def is_allowed(_: Ctx, tool: ToolDefinition) -> bool:
        metadata = tool.metadata or {}
        if allowed is not None and tool.name not in allowed:
            return False
        if mode == "plan":
            return not metadata.get("changes")
        return mode != "dream" or bool(metadata.get("memory"))

    return toolset.filtered(is_allowed)


def list_tool_names(folder: Path | None, extra: Collection[str]) -> list[str]:
    """The tools that the settings allow."""
    names = ["recall", "remember", "list_tasks", "update_task", "route_forward"]
    files = ["read_file", "list_files", "search_files", "write_file"] if folder else []
    return [*names, *files, *(["web_fetch"] if "web_fetch" in extra else [])]


def effect_key(turn: UUID, call: str | None) -> str:
    """The idempotency key of a call: the same when a worker makes it again."""
    return str(uuid5(turn, call or ""))


def _add_memory_tools(toolset: FunctionToolset[TurnState], reverie: AsyncReverie) -> None:
    @toolset.tool(metadata=MEMORY_READ)
    async def recall(ctx: Ctx, question: str) -> str:
        """Find memories that answer a question.

        Args:
            question: What you want to know, in plain words.
        """
        found = await reverie.recall_as_text(question, session=ctx.deps.turn.session)
        return found or "Nothing that answers it is remembered."

    @toolset.tool(metadata=MEMORY_CHANGE, sequential=True)
    async def remember(
        ctx: Ctx,
        content: str,
        kind: Literal["convention", "decision", "bug", "spec", "preference", "lesson", "context"],
        key: str | None = None,
    ) -> str:
        """Remember something that will matter in later conversations.

        Args:
            content: One statement that can be understood by itself, with its reason.
            kind: What it is.
            key: A short name. A new memory of the same name replaces the old one.
        """
        turn = ctx.deps.turn
        body = {"content": content, "kind": kind, "session": str(turn.session)}
        body |= {"scope": f"project/{turn.project}"} if turn.project else {}
        body |= {"key": key, "supersede_reason": "changed in a conversation"} if key else {}
        headers = {"Idempotency-Key": effect_key(turn.id, ctx.tool_call_id)}
        answer = await reverie.request(
            RememberResponse, "POST", "/v1/remember", body=body, headers=headers
        )
        return f"{answer.status}: {answer.id}"

    @toolset.tool(metadata=MEMORY_READ)
    async def list_tasks(ctx: Ctx) -> str:
        """List the open tasks."""
        lines = [
            f"{task.id} [{task.task.state}] {task.content}"
            async for task in reverie.list_tasks(state=["todo", "doing", "blocked"])
        ]
        return "\n".join(lines[:50]) or "There are none."

    @toolset.tool(metadata=MEMORY_CHANGE, sequential=True)
    async def update_task(
        ctx: Ctx, id: str, state: Literal["todo", "doing", "blocked", "done"]
    ) -> str:
        """Move a task to another state.

        Args:
            id: The id of the task.
            state: Its new state.
        """
        await reverie.update_task(id, state)
        return state


def _add_group_tools(toolset: FunctionToolset[TurnState], sources: ToolSources) -> None:
    @toolset.tool(metadata=HAND_ON, sequential=True)
    async def route_forward(ctx: Ctx, agent: str, task: str) -> str:
        """Give a task to another agent of this group. It answers in a turn of its own.

        Args:
            agent: The name of the agent.
            task: What it shall do, with all that it must know.
        """
        return await sources.hand_on(ctx, agent.lstrip("@").lower(), task)


def _add_file_tools(toolset: FunctionToolset[TurnState], workspace: Workspace) -> None:
    @toolset.tool(metadata=READ)
    async def read_file(ctx: Ctx, path: str, first_line: int = 1, lines: int = 400) -> str:
        """Read a text file of the folder.

        Args:
            path: The path within the folder.
            first_line: The first line to read.
            lines: How many lines.
        """
        return await workspace.read(path, first_line, lines)

    @toolset.tool(metadata=READ)
    async def list_files(ctx: Ctx, pattern: str = "*") -> str:
        """List files of the folder.

        Args:
            pattern: A pattern such as `src/**/*.py`.
        """
        return await workspace.find(pattern)

    @toolset.tool(metadata=READ)
    async def search_files(ctx: Ctx, text: str, pattern: str = "**/*") -> str:
        """Find lines that contain a text.

        Args:
            text: The text, as it stands in the file.
            pattern: The files to look through.
        """
        return await workspace.search(text, pattern)

    @toolset.tool(metadata=CHANGE, sequential=True)
    async def write_file(ctx: Ctx, path: str, content: str) -> str:
        """Write a text file of the folder; it replaces what is there.

        Args:
            path: The path within the folder.
            content: The whole new content.
        """
        return await workspace.write(path, content)


async def _fetch(ctx: Ctx, url: str) -> str:
    """Fetch the text of a public web page.

    Args:
        url: Its address.
    """
    return await fetch_page(url)
