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

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote
from uuid import uuid4

from reverie.agent.transcripts.claude_code import ClaudeCodeParser
from reverie.agent.transcripts.turn_filter import encode_turn, is_worth_sending
from reverie.client import ApiError, AsyncReverie, Unavailable

AGENT: Final = "claude-code"
"""Hooks of Claude Code use the same name and ids, so a turn that both send is stored once."""
MAX_BATCH_BYTES: Final = 4_000_000
MAX_BATCH_ENTRIES: Final = 1_000
MAX_TURNS: Final = 100
MAX_UNSENT_TURNS: Final = 1_000
MAX_SESSIONS: Final = 100
"""The sessions whose state a store holds; of another one, the turns that wait are dropped."""
_MAIN: Final = "main"
_SUB: Final = "sub/"

log = logging.getLogger("reverie.adapters")


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
        self._conversations: dict[str, _Conversation] = {}

    async def append(self, key: Mapping[str, Any], entries: Sequence[Any]) -> None:
        """Adds entries in order. An entry whose `uuid` is there is left as it is."""
        for batch in _split(_drop_repeated(entries)):
            await self._reverie.put_documents(
                _collection(key),
                [{"key": entry.get("uuid") or uuid4().hex, "value": entry} for entry in batch],
                scope=self._scope,
                if_absent=True,
            )
        if self._digests and not key.get("subpath"):
            session = key["session_id"]
            conversation = self._conversations.pop(session, None) or _Conversation()
            self._conversations[session] = conversation
            if len(self._conversations) > MAX_SESSIONS:
                del self._conversations[next(iter(self._conversations))]
            await conversation.send(self._reverie, session, self._project, entries)

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
        """The SDK's summaries. What was added since one was made is folded in now."""
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
        self._conversations.pop(key["session_id"], None)
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
    """What of a session was not yet sent as turns."""

    def __init__(self) -> None:
        self._parser = ClaudeCodeParser()
        self._unsent: list[dict[str, Any]] = []
        self._folder = ""
        self._id: str | None = None
        self._lock = asyncio.Lock()

    async def send(
        self, reverie: AsyncReverie, session: str, project: str | None, entries: Sequence[Any]
    ) -> None:
        """Sends the turns of entries. What fails is sent with the next entries."""
        for entry in entries:
            if isinstance(entry.get("cwd"), str):
                self._folder = entry["cwd"]
            turns = self._parser.parse_entry(entry)
            self._unsent += [encode_turn(turn) for turn in turns if is_worth_sending(turn)]
        self._unsent = self._unsent[-MAX_UNSENT_TURNS:]
        # Two appends at once would send the same turns, and drop others.
        async with self._lock:
            await self._send_all(reverie, session, project)

    async def _send_all(self, reverie: AsyncReverie, session: str, project: str | None) -> None:
        try:
            while self._unsent:
                if self._id is None:
                    name = project or os.path.basename(self._folder.rstrip("/\\")) or None
                    started = await reverie.start_session(
                        AGENT, project=name, external_id=session, include_context=False
                    )
                    self._id = str(started.session)
                batch = self._unsent[:MAX_TURNS]
                await reverie.append_turns(self._id, batch)
                self._unsent = [turn for turn in self._unsent if turn not in batch]
        except (ApiError, Unavailable) as error:
            log.warning("the turns of session %s wait: %s", session, error)


def _project_prefix(project_key: str) -> str:
    return f"claude-sdk/{quote(project_key, safe='')}/"


def _session_prefix(key: Mapping[str, Any]) -> str:
    return f"{_project_prefix(key['project_key'])}{quote(key['session_id'], safe='')}/"


def _collection(key: Mapping[str, Any]) -> str:
    subpath = key.get("subpath")
    return _session_prefix(key) + (f"{_SUB}{quote(subpath, safe='')}" if subpath else _MAIN)


def _drop_repeated(entries: Sequence[Any]) -> list[Any]:
    """Entries without those whose `uuid` comes a second time."""
    seen: set[str] = set()
    kept = []
    for entry in entries:
        uuid = entry.get("uuid")
        if uuid is None or uuid not in seen:
            kept.append(entry)
        if uuid is not None:
            seen.add(uuid)
    return kept


def _split(entries: Sequence[Any]) -> Iterator[list[Any]]:
    """Batches that one call takes."""
    batch: list[Any] = []
    size = 0
    for entry in entries:
        length = len(json.dumps(entry))
        if batch and (len(batch) == MAX_BATCH_ENTRIES or size + length > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(_replace_nul(entry))
        size += length
    if batch:
        yield batch


def _replace_nul(value: Any) -> Any:
    """A JSON value without NUL, which the gateway refuses."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_replace_nul(item) for item in value]
    if isinstance(value, dict):
        return {_replace_nul(name): _replace_nul(item) for name, item in value.items()}
    return value
