"""The tools of agents. Each says whether it changes something, and where it may be used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal
from uuid import UUID, uuid5

from pydantic_ai import CombinedToolset, FunctionToolset
from pydantic_ai.toolsets import AbstractToolset

from reverie.contracts.memories.memories import RememberResponse
from reverie_services.engine.tools.sandbox import run_in_sandbox
from reverie_services.engine.tools.web_pages import fetch_page
from reverie_services.engine.turn_state import Ctx, TurnState
from reverie_services.engine.workspace import Workspace

Function = Callable[..., Awaitable[str]]


@dataclass(frozen=True)
class ToolTraits:
    """What is known of a tool before it is called; the metadata of its definition.

    `changes`: its effect is entered in the ledger before it happens. `repeatable`: made again, it
    has its effect once, because it carries a key of its own. `memory`: dreams may use it. `needs`:
    what the settings must allow.
    """

    changes: bool = False
    repeatable: bool = False
    memory: bool = False
    needs: Literal["", "engine_folder", "web_fetch", "run_command"] = ""


TOOLS = {
    "recall": ToolTraits(memory=True),
    "remember": ToolTraits(memory=True, changes=True, repeatable=True),
    "list_tasks": ToolTraits(memory=True),
    "update_task": ToolTraits(memory=True, changes=True, repeatable=True),
    "route_forward": ToolTraits(changes=True, repeatable=True),
    "read_file": ToolTraits(needs="engine_folder"),
    "list_files": ToolTraits(needs="engine_folder"),
    "search_files": ToolTraits(needs="engine_folder"),
    "write_file": ToolTraits(changes=True, needs="engine_folder"),
    "run_command": ToolTraits(changes=True, needs="run_command"),
    "web_fetch": ToolTraits(needs="web_fetch"),
}
"""All tools of the engine itself. The static prompt and the toolset are both made of it."""


def list_tool_names(has_folder: bool, extra: Collection[str]) -> list[str]:
    """The tools that the settings allow."""
    given = {"", *extra, *(["engine_folder"] if has_folder else [])}
    return [name for name, traits in TOOLS.items() if traits.needs in given]


def is_offered(mode: str, traits: dict[str, Any]) -> bool:
    """Whether a mode offers a tool: all, those that only read (plan), or memory tools (dream)."""
    if mode == "plan":
        return not traits.get("changes")
    return mode != "dream" or bool(traits.get("memory"))


def choose_tools(
    names: Collection[str], mode: str, allowed: Collection[str] | None
) -> frozenset[str]:
    """The names of the tools that an agent may use in a mode."""
    return frozenset(
        name
        for name in names
        if is_offered(mode, asdict(TOOLS[name])) and (allowed is None or name in allowed)
    )


def build_toolset(
    servers: Sequence[AbstractToolset[TurnState]], mode: str, chosen: Collection[str]
) -> AbstractToolset[TurnState]:
    """The chosen tools of the engine, and what its MCP servers offer in a mode."""
    own = _OWN_TOOLS.filtered(lambda _, tool: tool.name in chosen)
    offered = CombinedToolset(servers).filtered(
        lambda _, tool: is_offered(mode, tool.metadata or {})
    )
    return CombinedToolset([own, offered])


def effect_key(turn: UUID, call: str | None) -> str:
    """The idempotency key of a call: the same when a worker makes it again."""
    return str(uuid5(turn, call or ""))


_OWN_TOOLS = FunctionToolset[TurnState](max_retries=2)
"""All tools of the engine itself: made once, because their schemas take time."""


def _add_tool(function: Function) -> Function:
    traits = TOOLS[function.__name__]
    _OWN_TOOLS.add_function(function, metadata=asdict(traits), sequential=traits.changes)
    return function


def _files(ctx: Ctx) -> Workspace:
    files = ctx.deps.sources.files
    assert files is not None, "the tools that need a folder are offered with one only"
    return files


@_add_tool
async def recall(ctx: Ctx, question: str) -> str:
    """Find memories that answer a question.

    Args:
        question: What you want to know, in plain words.
    """
    found = await ctx.deps.sources.reverie.recall_as_text(question, session=ctx.deps.turn.session)
    return found or "Nothing that answers it is remembered."


@_add_tool
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
    answer = await ctx.deps.sources.reverie.request(
        RememberResponse, "POST", "/v1/remember", body=body, headers=headers
    )
    return f"{answer.status}: {answer.id}"


@_add_tool
async def list_tasks(ctx: Ctx) -> str:
    """List the open tasks."""
    lines = [
        f"{task.id} [{task.task.state}] {task.content}"
        async for task in ctx.deps.sources.reverie.list_tasks(state=["todo", "doing", "blocked"])
    ]
    return "\n".join(lines[:50]) or "There are none."


@_add_tool
async def update_task(ctx: Ctx, id: str, state: Literal["todo", "doing", "blocked", "done"]) -> str:
    """Move a task to another state.

    Args:
        id: The id of the task.
        state: Its new state.
    """
    await ctx.deps.sources.reverie.update_task(id, state)
    return state


@_add_tool
async def route_forward(ctx: Ctx, agent: str, task: str) -> str:
    """Give a task to another agent of this group. It answers in a turn of its own.

    Args:
        agent: The name of the agent.
        task: What it shall do, with all that it must know.
    """
    return await ctx.deps.sources.hand_on(ctx, agent.lstrip("@").lower(), task)


@_add_tool
async def read_file(ctx: Ctx, path: str, first_line: int = 1, lines: int = 400) -> str:
    """Read a text file of the folder.

    Args:
        path: The path within the folder.
        first_line: The first line to read.
        lines: How many lines.
    """
    return await _files(ctx).read(path, first_line, lines)


@_add_tool
async def list_files(ctx: Ctx, pattern: str = "*") -> str:
    """List files of the folder.

    Args:
        pattern: A pattern such as `src/**/*.py`.
    """
    return await _files(ctx).find(pattern)


@_add_tool
async def search_files(ctx: Ctx, text: str, pattern: str = "**/*") -> str:
    """Find lines that contain a text.

    Args:
        text: The text, as it stands in the file.
        pattern: The files to look through.
    """
    return await _files(ctx).search(text, pattern)


@_add_tool
async def write_file(ctx: Ctx, path: str, content: str) -> str:
    """Write a text file of the folder; it replaces what is there.

    Args:
        path: The path within the folder.
        content: The whole new content.
    """
    return await _files(ctx).write(path, content)


@_add_tool
async def run_command(ctx: Ctx, command: str) -> str:
    """Run a shell command in the folder, without network. Gives what it prints.

    Args:
        command: The command, as for `sh -c`.
    """
    return await run_in_sandbox(_files(ctx).root, command)


@_add_tool
async def web_fetch(ctx: Ctx, url: str) -> str:
    """Fetch the text of a public web page.

    Args:
        url: Its address.
    """
    return await fetch_page(url)
