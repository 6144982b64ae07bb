"""All actions of the console by name, and those on memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from multidict import MultiMapping

from reverie.domain.core.kinds import STORED_EDGE_KINDS, Kind, Tier
from reverie.mcp.rest_calls import invalid_argument
from reverie_services.console.action import Action, ActionField, Send, form_call
from reverie_services.console.admin_actions import ADMIN_ACTIONS
from reverie_services.console.chat_actions import CHAT_ACTIONS
from reverie_services.console.page_request import PageRequest, memory_path, split_list


def _memory_call(method: str, tail: str = "") -> Send:
    """A call without a body; if the form names a version, only if that is the current one."""

    async def send(request: PageRequest, item: str) -> Any:
        path = memory_path(item) + tail
        return await request.send(method, path, version=request.form.get("version"))

    return send


async def _edit(request: PageRequest, item: str) -> Any:
    form = request.form
    body: dict[str, Any] = {
        "content": form.get("content", "").replace("\r\n", "\n"),
        "summary": form.get("summary", "").strip(),
        "tags": split_list(form.get("tags", "")),
        "kind": form.get("kind", ""),
    }
    # The field is not called `tier`: it would show the present one, and storing it fixes it.
    given = {"tier": form.get("new_tier", ""), "reason": form.get("reason", "").strip()}
    body |= {name: text for name, text in given.items() if text}
    return await request.send("PATCH", memory_path(item), body, version=form.get("version"))


async def _approve(request: PageRequest, item: str) -> Any:
    return await request.send("POST", f"{memory_path(item)}/feedback", {"verdict": "approve"})


async def _roll_back(request: PageRequest, item: str) -> Any:
    body: dict[str, Any] = {"version": _whole_number(request.form, "to_version")}
    if reason := request.form.get("reason", "").strip():
        body["reason"] = reason
    version = request.form.get("version")
    return await request.send("POST", f"{memory_path(item)}/rollback", body, version=version)


async def _link(request: PageRequest, item: str) -> Any:
    target = await request.get(memory_path(request.form.get("to", "").strip() or "-"))
    body = {"from": item, "to": target["id"], "type": request.form.get("type", "")}
    return await request.send("POST", "/v1/links", body)


async def _dream(request: PageRequest, item: str) -> Any:
    return await request.send("POST", "/v1/dream", {"scope": item} if item else {})


async def _move_task(request: PageRequest, item: str) -> Any:
    path = f"/v1/tasks/{quote(item, safe='')}"
    return await request.send("PATCH", path, {"state": request.form.get("state", "")})


def _whole_number(form: MultiMapping[str], name: str) -> int:
    text = form.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise invalid_argument(name, "input should be a whole number")
    return int(text)


_REASON = ActionField("reason", "Reason, kept in the history")
_TIERS = tuple(tier.value for tier in Tier)
_KINDS = tuple(kind.value for kind in Kind if kind not in {Kind.FILE, Kind.ENTITY})

ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        Action(
            "edit",
            "Edit",
            "Stores a new version. Agents are given the new text from now on. The version before "
            "stays in the history, and can be restored from there.",
            "A new version is stored.",
            _edit,
            (
                ActionField("content", "Text", "textarea", required=True),
                ActionField("summary", "Summary"),
                ActionField("tags", "Tags, separated by commas"),
                ActionField("kind", "Kind", "select", _KINDS),
                ActionField("new_tier", "Put into the tier", "select", ("", *_TIERS)),
                _REASON,
            ),
        ),
        Action(
            "pin",
            "Pin",
            "A pinned memory is given at the start of every session of its scope, and never loses "
            "confidence with time.",
            "The memory is pinned.",
            _memory_call("PUT", "/pin"),
        ),
        Action(
            "unpin",
            "Unpin",
            "The memory is given where it fits the question, and loses confidence with time as "
            "its kind does.",
            "The memory is no longer pinned.",
            _memory_call("DELETE", "/pin"),
        ),
        Action(
            "confirm",
            "Confirm",
            "Says that the memory is still true. Its marks of staleness are removed, and its "
            "confidence is renewed.",
            "Confirmed: the marks of staleness are removed.",
            _memory_call("POST", "/confirm"),
        ),
        Action(
            "approve",
            "Approve",
            "Says that the memory is right: it gets full confidence, and its marks of staleness "
            "are removed.",
            "Approved: the memory has full confidence.",
            _approve,
        ),
        Action(
            "forget",
            "Forget",
            "No answer contains the memory again, and what quotes it is forgotten with it. It can "
            "be restored until its text is erased.",
            "Forgotten.",
            _memory_call("DELETE"),
            undone_by="restore",
        ),
        Action(
            "archive",
            "Archive",
            "Puts the memory away: it is found only when archived memories are asked for. It can "
            "be restored at any time.",
            "The memory is archived.",
            _memory_call("POST", "/archive"),
            undone_by="restore",
        ),
        Action(
            "erase",
            "Erase",
            "Erases the text of the memory in every table, at once. This is for what must go, such "
            "as personal data. This cannot be undone.",
            "Erased.",
            form_call("POST", "/v1/memories/{id}/erase", "reason"),
            (_REASON,),
            is_final=True,
        ),
        Action(
            "restore",
            "Restore",
            "A memory that was archived or forgotten becomes active: agents are given it again.",
            "The memory is active again.",
            _memory_call("POST", "/restore"),
        ),
        Action(
            "rollback",
            "Roll back",
            "Stores the text of the earlier version as a new version. Nothing of the history is "
            "lost, so this can itself be rolled back.",
            "The earlier version is restored as a new version.",
            _roll_back,
            (ActionField("to_version", "Version to restore", "number", required=True), _REASON),
        ),
        Action(
            "link",
            "Link",
            "Adds an edge from this memory to another one. Recall follows edges, so that a "
            "question that finds one of them may be given the other, too.",
            "The memories are linked.",
            _link,
            (
                ActionField("to", "Id of the other memory", required=True),
                ActionField(
                    "type", "Relation", "select", tuple(kind.value for kind in STORED_EDGE_KINDS)
                ),
            ),
        ),
        Action(
            "unlink",
            "Remove the link",
            "Closes the edge. Questions about an earlier moment still follow it.",
            "The link is removed.",
            form_call("DELETE", "/v1/links/{id}"),
            subject="link",
        ),
        Action(
            "dream",
            "Run a dream now",
            "Digests all turns of this scope that wait, open topics included, into memories. It "
            "runs in the background.",
            "The dream is queued.",
            _dream,
            subject="scope",
        ),
        Action(
            "accept-review",
            "Accept",
            "Carries out what the review proposes for the memory.",
            "The proposal is carried out.",
            form_call("POST", "/v1/reviews/{id}/accept"),
            subject="review",
        ),
        Action(
            "reject-review",
            "Reject",
            "The memory stays as it is, and the proposal is closed.",
            "The proposal is rejected.",
            form_call("POST", "/v1/reviews/{id}/reject"),
            subject="review",
        ),
        Action(
            "move-task",
            "Move",
            "Sets the state of the task. Agents that look for work see it at once.",
            "The task has its new state.",
            _move_task,
            (ActionField("state", "State", "select", ("todo", "doing", "blocked", "done")),),
        ),
        *ADMIN_ACTIONS,
        *CHAT_ACTIONS,
    )
}
