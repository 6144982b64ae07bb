"""Actions of a chat with agents: begin one, send a message, decide a call, stop turns."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from reverie.domain.formats.attachments import Attachments
from reverie_services.console.action import Action, ActionField, form_call
from reverie_services.console.page_request import PageRequest, page_path
from reverie_services.console.requests import redirect

_MODES = ("unified", "plan", "dream")


def _group_path(group: str, tail: str) -> str:
    return f"/v1/groups/{quote(group, safe='')}/{tail}"


async def _begin(request: PageRequest, _: str) -> Any:
    names = request.form.getall("agent", []) or request.form.get("agents", "").split(",")
    body: dict[str, Any] = {"agents": [name.strip() for name in names if name.strip()]}
    if project := request.form.get("project", "").strip():
        body["project"] = project
    body["answers"] = "everyone" if request.form.get("answers") == "everyone" else "default"
    group = await request.send("POST", "/v1/groups", body)
    return redirect(page_path("chat", group["id"]))


async def _post_message(request: PageRequest, group: str) -> Any:
    given = Attachments()
    for name, data in request.files:
        given.add(name, data)
    text = request.form.get("text", "").replace("\r\n", "\n")
    body: dict[str, Any] = {"text": text, **given.encode()}
    if request.form.get("mode") in _MODES:
        body["mode"] = request.form.get("mode")
    posted = await request.send("POST", _group_path(group, "messages"), body)
    return redirect(f"{page_path('chat', group)}?from={int(posted['after'])}#end")


async def _decide(request: PageRequest, group: str) -> Any:
    body = {"turn": request.form.get("turn", ""), "call": request.form.get("call", "")}
    approved = request.form.get("decision") == "approve"
    return await request.send(
        "POST", _group_path(group, "approvals"), {**body, "approved": approved}
    )


CHAT_ACTIONS: tuple[Action, ...] = (
    Action(
        "begin-chat",
        "Begin a chat",
        "Begins a conversation with these agents. What is said is a session, which dreams digest.",
        "The chat has begun.",
        _begin,
        (ActionField("agents", "Agents, separated by commas", required=True),),
        subject="chat",
    ),
    Action(
        "say",
        "Say",
        "Says this to the agents of the chat, which may call tools with your rights.",
        "It was said.",
        _post_message,
        (ActionField("text", "Message", "textarea", required=True),),
        subject="chat",
    ),
    Action(
        "decide-call",
        "Decide",
        "Approves or denies the call of a tool that waits.",
        "The call is decided.",
        _decide,
        subject="chat",
    ),
    Action(
        "stop-chat",
        "Stop",
        "Stops all turns of the chat that are open. What was said is kept.",
        "The turns were stopped.",
        form_call("POST", "/v1/groups/{id}/stop"),
        subject="chat",
    ),
)
