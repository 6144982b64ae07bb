"""Sessions of OpenAI's Agents SDK, kept in Reverie and digested by dreams.

`await Runner.run(agent, "Hello", session=ReverieSession("chat-1", reverie, project="shop"))`
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import resolve_session_limit

from reverie.adapters.common import TurnQueue
from reverie.client import AsyncReverie
from reverie.domain.text.characters import is_blank
from reverie.domain.text.truncation import MAX_TOOL_BYTES, truncate_middle

MAX_ARGUMENT = 1_000
"""The characters of an argument of a tool that a turn shows."""


class ReverieSession(SessionABC):  # type: ignore[misc]
    """The items of a conversation as documents, and its texts and tool calls as turns.

    Items come back as they were, in their order, with two exceptions: secrets are replaced, and a
    NUL character is refused. Each item also becomes at most one turn of the Reverie session with
    the `session_id` as its external id: texts of user and assistant, and calls of tools with their
    results, shortened. `pop_item` and `clear_session` change the items alone: turns stay, since
    they say what happened.
    """

    def __init__(
        self,
        session_id: str,
        client: AsyncReverie,
        *,
        agent: str = "openai-agents",
        project: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._client, self._project = client, project
        self._scope = f"project/{project}" if project else None
        self._collection = f"openai-agents/{quote(session_id)}"
        self._turns = TurnQueue(client, agent, session_id)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, or the latest `limit` of them, in their order."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit == 0:
            return []
        if limit is None or limit < 0:
            return [item.value async for item in self._documents()]
        items: list[Any] = []
        async for document in self._documents(newest=True):
            items.append(document.value)
            if len(items) == limit:
                break
        return items[::-1]

    async def add_items(self, items: list[Any]) -> None:
        """Adds items at the end, and appends the turns that they make.

        Turns that cannot be sent wait for the next items, so that items are not added again.
        """
        if not items:
            return
        keyed = [(uuid4().hex, item) for item in items]
        turns = [turn for key, item in keyed if (turn := await self._turn(key, item, items))]
        documents = [{"key": key, "value": item} for key, item in keyed]
        await self._client.put_documents(self._collection, documents, scope=self._scope)
        await self._turns.send(turns, self._project)

    async def pop_item(self) -> Any | None:
        """Removes the latest item and returns it."""
        while True:
            latest = await anext(self._documents(newest=True), None)
            if latest is None:
                return None
            gone = await self._client.delete_documents(
                self._collection, keys=[latest.key], scope=self._scope
            )
            # Else another program has just removed it.
            if gone.deleted:
                return latest.value

    async def clear_session(self) -> None:
        """Removes all items."""
        await self._client.delete_documents(self._collection, scope=self._scope)

    def _documents(self, newest: bool = False) -> Any:
        order: Any = "newest" if newest else None
        return self._client.list_documents(self._collection, scope=self._scope, order=order)

    async def _turn(
        self, key: str, item: dict[str, Any], added: list[Any]
    ) -> dict[str, Any] | None:
        """The turn that an item makes; a call makes one with its result."""
        kind = str(item.get("type") or "message")
        role = item.get("role")
        if kind == "message" and role in ("user", "assistant"):
            content, tool = _text_of(item.get("content")), None
        elif kind.endswith("_call_output"):
            call = await self._call_of(item.get("call_id"), added)
            name = str(call.get("name") or "")[:200]
            role, tool = "tool", kind.removesuffix("_call_output") if is_blank(name) else name
            content = _tool_text(call, _text_of(item.get("output")))
        else:
            return None
        if is_blank(content):
            return None
        turn = {"role": role, "content": content, "external_id": key}
        return turn | {"tool": tool} if tool else turn

    async def _call_of(self, call_id: Any, added: list[Any]) -> dict[str, Any]:
        """The call of a result: it is added now, or among the latest items."""
        for item in reversed(added):
            if _is_call(item, call_id):
                return dict(item)
        async for document in self._documents(newest=True):
            if _is_call(document.value, call_id):
                return dict(document.value)
        return {}


def _is_call(item: dict[str, Any], call_id: Any) -> bool:
    return item.get("call_id") == call_id and not str(item.get("type")).endswith("_output")


def _text_of(content: Any) -> str:
    """The text of a message or a result: itself, or its texts without pictures and files."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    parts = [part.get("text") or part.get("refusal") for part in content if isinstance(part, dict)]
    return "\n\n".join(part for part in parts if isinstance(part, str))


def _tool_text(call: dict[str, Any], output: str) -> str:
    """A call and its result, in the form of the turns of transcripts."""
    arguments: Any = call.get("arguments") or call.get("input") or call.get("action") or {}
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    is_text = isinstance(arguments, str)
    text = arguments if is_text else json.dumps(arguments, ensure_ascii=False)
    # Arguments of a function have no names that a trace shows.
    is_named = isinstance(arguments, dict)
    shown = {"description": text, **arguments} if is_named else {"command": text}
    short = {name: part[:MAX_ARGUMENT] for name, part in shown.items() if isinstance(part, str)}
    request = json.dumps(short, ensure_ascii=False)
    return truncate_middle(f"{request}\n```\n{output}\n```", MAX_TOOL_BYTES)
