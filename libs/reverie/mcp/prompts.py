"""The prompts that a person may choose: recall into the conversation, session handoff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reverie.domain.context.text_rendering import render_memories
from reverie.mcp.rest_calls import RestClient, call_rest, invalid_argument
from reverie.mcp.tool_results import compact, fence_body, to_json

_NO_MEMORIES = "Nothing is known about that."
_OPEN_STATES = ["todo", "doing", "blocked"]
"""States of tasks that are not done."""


@dataclass(frozen=True)
class McpPrompt:
    """A prompt, with the description of each argument by name."""

    name: str
    description: str
    arguments: Mapping[str, str]
    required: tuple[str, ...] = ()


PROMPTS = (
    McpPrompt(
        "recall_context",
        "What is known about a topic, with how it hangs together",
        {"query": "the topic or question"},
        ("query",),
    ),
    McpPrompt(
        "session_handoff",
        "Write the hand-over of a session for whoever goes on",
        {"session": "its id, also short, or the agent's name for it; without one, the newest"},
    ),
)


async def render_prompt(
    rest: RestClient, name: str, arguments: Mapping[str, str], project: str | None
) -> tuple[str, str]:
    """The description and the text of a prompt. Raises `RestCallError`."""
    prompts_by_name = {candidate.name: candidate for candidate in PROMPTS}
    if name not in prompts_by_name:
        raise invalid_argument("name", f"unknown prompt; there are {', '.join(prompts_by_name)}")
    prompt = prompts_by_name[name]
    for argument in prompt.required:
        if not arguments.get(argument, "").strip():
            raise invalid_argument(argument, "is required")
    if name == "recall_context":
        return prompt.description, await _render_recall(rest, arguments["query"], project)
    return prompt.description, await _render_handoff(
        rest, arguments.get("session", "").strip() or None, project
    )


async def _render_recall(rest: RestClient, query: str, project: str | None) -> str:
    project_field = {"project": project} if project else {}
    answer = await call_rest(
        rest, "POST", "/v1/recall", None, {"query": query, "depth": 3, **project_field}
    )
    memories = answer["memories"] if answer["answered"] else []
    text = (
        f"Take into account what is known about: "
        f"{query}\n\n{render_memories(memories, _NO_MEMORIES)}"
    )
    if not memories or not answer["edges"]:
        return text
    edges = [f"- {edge['from']} {edge['type']} {edge['to']}" for edge in answer["edges"]]
    return f"{text}\n\nHow these hang together:\n" + "\n".join(edges)


async def _render_handoff(rest: RestClient, session: str | None, project: str | None) -> str:
    body = await _find_session(rest, session, project)
    if body is None:
        return "No session was recorded yet, so there is nothing to hand over."
    session_id = str(body["id"])
    learned = await call_rest(rest, "GET", "/v1/memories", {"session": session_id, "limit": 50})
    open_tasks = await _list_open_tasks(rest, body)
    stale = await call_rest(
        rest, "GET", "/v1/stale", {"limit": 10, "project": body.get("project") or None}
    )
    doubtful = [{**item["memory"], "stale_reason": item["grade"]} for item in stale["items"]]
    parts = (
        "Write the hand-over of this session for the agent who goes on: what was done and decided "
        "and why, what is open, what to look out for. At most 300 words. Then save it with "
        "remember (kind session).",
        f"The session:\n{to_json(fence_body(compact(body)))}",
        f"Learned in it:\n{render_memories(learned['items'], 'Nothing was remembered.')}",
        f"Open tasks:\n{render_memories(open_tasks, 'None.')}",
        f"Made doubtful by commits:\n{render_memories(doubtful, 'Nothing.')}",
    )
    return "\n\n".join(parts)


async def _list_open_tasks(rest: RestClient, session: Mapping[str, Any]) -> list[Any]:
    """The open tasks in the session's scope and in its project."""
    tasks: list[Any] = []
    project_scopes = [f"project/{session['project']}"] if session.get("project") else []
    for scope in dict.fromkeys([session["scope"], *project_scopes]):
        query = {"limit": 50, "scope": scope, "state": _OPEN_STATES}
        tasks += (await call_rest(rest, "GET", "/v1/tasks", query))["items"]
    return tasks


async def _find_session(
    rest: RestClient, session_id: str | None, project: str | None
) -> dict[str, Any] | None:
    """The session with this id, short id or name; without one, the newest."""
    query = {"session": session_id, "project": None if session_id else project, "limit": 1}
    sessions = (await call_rest(rest, "GET", "/v1/sessions", query))["items"]
    return dict(sessions[0]) if sessions else None
