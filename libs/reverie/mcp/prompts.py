"""Prompts a person may choose: recall into the conversation, hand a session over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reverie.contracts.problems import problem_of
from reverie.domain.errors import Invalid
from reverie.domain.told_lines import lines
from reverie.mcp.answers import dumped, fenced, short
from reverie.mcp.rest import Failed, Rest, ask

_NOTHING = "Nothing is known about that."
_OPEN = ["todo", "doing", "blocked"]
"""States of tasks that are not done."""


@dataclass(frozen=True)
class Prompt:
    """A prompt: its arguments by name, each with what it is for."""

    name: str
    about: str
    arguments: Mapping[str, str]
    required: tuple[str, ...] = ()


PROMPTS = (
    Prompt(
        "recall_context",
        "What is known about a topic, with how it hangs together",
        {"query": "the topic or question"},
        ("query",),
    ),
    Prompt(
        "session_handoff",
        "Write the hand-over of a session for whoever goes on",
        {"session": "its id, also short, or the agent's name for it; without one, the newest"},
    ),
)


async def rendered(
    rest: Rest, name: str, given: Mapping[str, str], project: str | None
) -> tuple[str, str]:
    """The description and the text of a prompt. Raises `Failed`."""
    known = {one.name: one for one in PROMPTS}
    if name not in known:
        raise Failed(problem_of(Invalid("name", f"unknown prompt; there are {', '.join(known)}")))
    prompt = known[name]
    for wanted in prompt.required:
        if not given.get(wanted, "").strip():
            raise Failed(problem_of(Invalid(wanted, "is required")))
    if name == "recall_context":
        return prompt.about, await _recall(rest, given["query"], project)
    return prompt.about, await _handoff(rest, given.get("session", "").strip() or None, project)


async def _recall(rest: Rest, query: str, project: str | None) -> str:
    place = {"project": project} if project else {}
    found = await ask(rest, "POST", "/v1/recall", None, {"query": query, "depth": 3, **place})
    said = f"Take into account what is known about: {query}\n\n{lines(found['memories'], _NOTHING)}"
    if not found["edges"]:
        return said
    edges = [f"- {one['from']} {one['type']} {one['to']}" for one in found["edges"]]
    return f"{said}\n\nHow these hang together:\n" + "\n".join(edges)


async def _handoff(rest: Rest, session: str | None, project: str | None) -> str:
    body = await _session(rest, session, project)
    if body is None:
        return "No session was recorded yet, so there is nothing to hand over."
    ident = str(body["id"])
    learned = await ask(rest, "GET", "/v1/memories", {"session": ident, "limit": 50})
    open_tasks = await _open_tasks(rest, body)
    stale = await ask(rest, "GET", "/v1/stale", {"limit": 10, **_of(body)})
    doubtful = [{**one["memory"], "stale_reason": one["grade"]} for one in stale["items"]]
    parts = (
        "Write the hand-over of this session for the agent who goes on: what was done and decided "
        "and why, what is open, what to look out for. At most 300 words. Then save it with "
        "remember (kind session).",
        f"The session:\n{dumped(fenced(short(body)))}",
        f"Learned in it:\n{lines(learned['items'], 'Nothing was remembered.')}",
        f"Open tasks:\n{lines(open_tasks, 'None.')}",
        f"Made doubtful by commits:\n{lines(doubtful, 'Nothing.')}",
    )
    return "\n\n".join(parts)


def _of(session: Mapping[str, Any]) -> dict[str, Any]:
    return {"project": session["project"]} if session.get("project") else {}


async def _open_tasks(rest: Rest, session: Mapping[str, Any]) -> list[Any]:
    """What is not done where the session was, and in the project around it."""
    found: list[Any] = []
    around = [f"project/{session['project']}"] if session.get("project") else []
    for scope in dict.fromkeys([session["scope"], *around]):
        query = {"limit": 50, "scope": scope, "state": _OPEN}
        found += (await ask(rest, "GET", "/v1/tasks", query))["items"]
    return found


async def _session(rest: Rest, named: str | None, project: str | None) -> dict[str, Any] | None:
    """The session that is named, as all doors name it; else the newest."""
    query = {"session": named, "project": None if named else project, "limit": 1}
    found = (await ask(rest, "GET", "/v1/sessions", query))["items"]
    return dict(found[0]) if found else None
