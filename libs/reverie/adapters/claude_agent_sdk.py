"""Claude Agent SDK: its transcripts are kept in Reverie, and dreams digest them.

    from claude_agent_sdk import ClaudeAgentOptions, query
    from reverie.adapters.claude_agent_sdk import ReverieSessionStore

    async with AsyncReverie(url, key) as reverie:
        options = ClaudeAgentOptions(session_store=ReverieSessionStore(reverie, project="shop"))
        async for message in query(prompt="How do we store prices?", options=options):
            print(message)

Secrets in an entry are replaced, and a NUL character becomes U+FFFD. Every other entry comes back
as it was. `fold_session_summary` of the SDK is imported when summaries are asked for.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import quote, unquote
from uuid import uuid4

from reverie.adapters.common import MAX_SESSIONS, TurnQueue
from reverie.agent.transcripts.claude_code import ClaudeCodeParser
from reverie.agent.transcripts.turn_filter import encode_turn, is_worth_sending
from reverie.client import AsyncReverie

AGENT: Final = "claude-code"
"""Hooks of Claude Code use the same name and ids, so a turn that both send is stored once."""
_MAIN: Final = "main"
_SUB: Final = "sub/"


class ReverieSessionStore:
    """A `SessionStore` of the Claude Agent SDK on documents of Reverie.

    `scope`: of the documents; that of the key, unless it is given. `project`: of the turns that
    dreams digest; the folder's name, unless it is given. With `digests` false, no turns are sent.
    """

    def __init__(
        self,
        reverie: AsyncReverie,
        *,
        scope: str | None = None,
        project: str | None = None,
        digests: bool = True,
    ) -> None:
        self._reverie = reverie
        self._scope = scope
        self._project = project
        self._digests = digests
        self._conversation = lru_cache(MAX_SESSIONS)(partial(_Conversation, reverie))

    async def append(self, key: Mapping[str, Any], entries: Sequence[Any]) -> None:
        """Adds entries in order. An entry with a known `uuid` is left as it is."""
        keyed: dict[str, Any] = {}
        for entry in entries:
            keyed.setdefault(entry.get("uuid") or uuid4().hex, _replace_nul(entry))
        if not keyed:
            return
        await self._reverie.put_documents(
            _collection(key),
            [{"key": uuid, "value": entry} for uuid, entry in keyed.items()],
            scope=self._scope,
            if_absent=True,
        )
        if self._digests and not key.get("subpath"):
            await self._conversation(key["session_id"]).send(self._project, entries)

    async def load(self, key: Mapping[str, Any]) -> list[Any] | None:
        """The entries in order; None if there are none."""
        documents = self._reverie.list_documents(_collection(key), scope=self._scope)
        return [document.value async for document in documents] or None

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """The ids of sessions, with the time of their last write in milliseconds."""
        return [
            {"session_id": session, "mtime": mtime}
            async for session, kind, mtime in self._list(_project_prefix(project_key))
            if kind == _MAIN
        ]

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """The SDK's summaries, with the entries that were added since folded in."""
        from claude_agent_sdk import fold_session_summary

        folder = f"claude-sdk-summaries/{quote(project_key, safe='')}"
        known = {
            document.key: document.value
            async for document in self._reverie.list_documents(folder, scope=self._scope)
        }
        summaries = []
        for listed in await self.list_sessions(project_key):
            session, mtime = listed["session_id"], listed["mtime"]
            kept = known.get(session) or {"summary": None, "position": None}
            key: Any = {"project_key": project_key, "session_id": session}
            if kept["summary"] is None or kept["summary"]["mtime"] < mtime:
                documents = self._reverie.list_documents(
                    _collection(key), scope=self._scope, after=kept["position"]
                )
                added = [document async for document in documents]
                entries = [document.value for document in added]
                summary = fold_session_summary(kept["summary"], key, entries)
                position = added[-1].position if added else kept["position"]
                kept = {"summary": {**summary, "mtime": mtime}, "position": position}
                await self._reverie.put_documents(
                    folder, [{"key": session, "value": kept}], scope=self._scope
                )
            summaries.append(kept["summary"])
        return summaries

    async def delete(self, key: Mapping[str, Any]) -> None:
        """Deletes a session with all below it, or one `subpath` of it. Its turns stay."""
        if key.get("subpath"):
            await self._reverie.delete_documents(_collection(key), scope=self._scope)
            return
        await self._reverie.delete_documents(
            _session_prefix(key), is_prefix=True, scope=self._scope
        )
        await self._reverie.delete_documents(
            f"claude-sdk-summaries/{quote(key['project_key'], safe='')}",
            keys=[key["session_id"]],
            scope=self._scope,
        )

    async def list_subkeys(self, key: Mapping[str, Any]) -> list[str]:
        """The subpaths of a session, such as transcripts of sub-agents."""
        return [
            unquote(kind.removeprefix(_SUB))
            async for _, kind, _ in self._list(_session_prefix(key))
            if kind.startswith(_SUB)
        ]

    async def _list(self, prefix: str) -> AsyncIterator[tuple[str, str, int]]:
        """The session, kind and time of the last write of each collection."""
        collections = self._reverie.list_collections(prefix=prefix, scope=self._scope)
        async for collection in collections:
            _, _, session, kind = collection.collection.split("/", 3)
            yield unquote(session), kind, int(collection.updated_at.timestamp() * 1000)


class _Conversation:
    """The entries of a session that were not yet sent as turns."""

    def __init__(self, client: AsyncReverie, session: str) -> None:
        self._parser = ClaudeCodeParser()
        self._folder = ""
        self._turns = TurnQueue(client, AGENT, session)

    async def send(self, project: str | None, entries: Sequence[Any]) -> None:
        """Sends the turns of entries."""
        turns: list[dict[str, Any]] = []
        for entry in entries:
            if isinstance(entry.get("cwd"), str):
                self._folder = entry["cwd"]
            parsed = self._parser.parse_entry(entry)
            turns += [encode_turn(turn) for turn in parsed if is_worth_sending(turn)]
        name = project or os.path.basename(self._folder.rstrip("/\\")) or None
        await self._turns.send(turns, name)


def _project_prefix(project_key: str) -> str:
    return f"claude-sdk/{quote(project_key, safe='')}/"


def _session_prefix(key: Mapping[str, Any]) -> str:
    return f"{_project_prefix(key['project_key'])}{quote(key['session_id'], safe='')}/"


def _collection(key: Mapping[str, Any]) -> str:
    subpath = key.get("subpath")
    return _session_prefix(key) + (f"{_SUB}{quote(subpath, safe='')}" if subpath else _MAIN)


def _replace_nul(value: Any) -> Any:
    """A JSON value without NUL, which the gateway refuses."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_replace_nul(item) for item in value]
    if isinstance(value, dict):
        return {_replace_nul(name): _replace_nul(item) for name, item in value.items()}
    return value
