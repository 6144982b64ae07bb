"""Checkpoints and the writes after them, as documents: a collection for each thread.

Keys are `head/<namespace>/<id>` for the metadata, which lists and searches read, and
`body/<namespace>/<id>/…` for the checkpoint and each write after it. Each part is quoted.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from reverie.client import AsyncReverie
from reverie.contracts.documents import MAX_DOCUMENTS

_THREADS: Final = "langgraph/threads/"
_BATCH_BYTES: Final = 1_000_000
_LATEST: Final = 100
"""The last checkpoints among which the latest is sought, because writers' clocks may differ."""


@dataclass(frozen=True)
class _Head:
    """The identity of a checkpoint, and its metadata."""

    thread: str
    namespace: str
    id: str
    metadata: CheckpointMetadata

    @property
    def key(self) -> str:
        return f"head/{_quote(self.namespace)}/{_quote(self.id)}"

    @property
    def body(self) -> str:
        """The beginning of the keys of the checkpoint and of its writes."""
        return f"body/{_quote(self.namespace)}/{_quote(self.id)}/"


class Checkpoints:
    """The checkpoints in a scope, encoded by `serde`."""

    def __init__(self, reverie: AsyncReverie, scope: str | None, serde: SerializerProtocol) -> None:
        self._reverie = reverie
        self._scope = scope
        self._serde = serde

    async def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> RunnableConfig:
        """Stores a checkpoint; returns its config."""
        thread, namespace, parent = _read_config(config)
        kept = get_checkpoint_metadata(config, metadata)
        head = _Head(thread, namespace, checkpoint["id"], kept)
        documents = [
            {"key": f"{head.body}checkpoint", "data": self._encode((checkpoint, kept, parent))},
            {"key": head.key, "data": self._encode(kept)},
        ]
        await self._put(thread, documents)
        return _build_config(thread, namespace, head.id)

    async def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> None:
        """Stores writes. A special one (an error, an interrupt) replaces the one before it."""
        thread, namespace, checkpoint_id = _read_config(config)
        body = f"body/{_quote(namespace)}/{_quote(checkpoint_id or '')}/"
        plain: dict[str, dict[str, Any]] = {}
        special: dict[str, dict[str, Any]] = {}
        for position, (channel, value) in enumerate(writes):
            number = WRITES_IDX_MAP.get(channel, position)
            key = f"{body}write/{_quote(task_id)}/{number}"
            data = self._encode((task_path, task_id, number, channel, value))
            (plain if number >= 0 else special)[key] = {"key": key, "data": data}
        await self._put(thread, list(plain.values()), if_absent=True)
        await self._put(thread, list(special.values()))

    async def get(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of the config, or the latest of its thread."""
        thread, namespace, checkpoint_id = _read_config(config)
        if checkpoint_id is None:
            latest = await self._find_latest(thread, namespace)
            if latest is None:
                return None
            checkpoint_id = latest
        return await self._load(thread, namespace, checkpoint_id)

    async def list_tuples(
        self,
        config: RunnableConfig | None,
        filters: dict[str, Any],
        before: RunnableConfig | None,
        limit: int | None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints whose metadata have the values of `filters`, the latest first."""
        end = get_checkpoint_id(before) if before else None
        heads = [
            head
            async for head in self._select_heads(config)
            if (end is None or head.id < end)
            and all(head.metadata.get(name) == value for name, value in filters.items())
        ]
        heads.sort(key=lambda head: head.id, reverse=True)
        for head in heads[: limit if limit is None else max(limit, 0)]:
            found = await self._load(head.thread, head.namespace, head.id)
            if found is not None:
                yield found

    async def delete_thread(self, thread: str) -> None:
        """Deletes all of a thread."""
        await self._reverie.delete_documents(_name_thread(thread), scope=self._scope)

    async def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs."""
        runs = set(run_ids)
        if not runs:
            return
        heads = [
            head async for head in self._select_heads(None) if head.metadata.get("run_id") in runs
        ]
        await self._delete(heads)

    async def copy_thread(self, source: str, target: str) -> None:
        """Copies all documents of a thread, in order."""
        batch: list[dict[str, Any]] = []
        size = 0
        async for item in self._reverie.list_documents(_name_thread(source), scope=self._scope):
            batch.append({"key": item.key, "data": item.data})
            size += len(item.data or "")
            if size > _BATCH_BYTES or len(batch) == MAX_DOCUMENTS:
                await self._put(target, batch)
                batch, size = [], 0
        await self._put(target, batch)

    async def prune(self, threads: Sequence[str], strategy: str) -> None:
        """Deletes what the latest checkpoint of a namespace does not need, or all."""
        if strategy not in {"keep_latest", "delete"}:
            raise ValueError(f"strategy is {strategy!r}: it is 'keep_latest' or 'delete'")
        for thread in threads:
            if strategy == "delete":
                await self.delete_thread(thread)
                continue
            by_namespace: dict[str, list[_Head]] = {}
            async for head in self._list_heads(thread):
                by_namespace.setdefault(head.namespace, []).append(head)
            for namespace, heads in by_namespace.items():
                needed = await self._find_needed(thread, namespace, max(h.id for h in heads))
                await self._delete([head for head in heads if head.id not in needed])

    async def _find_needed(self, thread: str, namespace: str, latest: str) -> set[str]:
        """The checkpoint, and its ancestors up to where each of its channels has a value.

        A delta channel has a value at some checkpoints only, and is rebuilt from the writes since.
        """
        needed: set[str] = set()
        missing: set[str] | None = None
        checkpoint_id: str | None = latest
        while checkpoint_id is not None and missing != set():
            found = await self._load(thread, namespace, checkpoint_id)
            if found is None:
                break
            needed.add(checkpoint_id)
            if missing is None:
                # Channels of the graph itself are empty between two steps, and not deltas.
                names = found.checkpoint["channel_versions"]
                missing = {name for name in names if not name.startswith(("__", "branch:"))}
            missing -= found.checkpoint["channel_values"].keys()
            checkpoint_id = get_checkpoint_id(found.parent_config or _NO_CONFIG)
        return needed

    async def _load(
        self, thread: str, namespace: str, checkpoint_id: str
    ) -> CheckpointTuple | None:
        head = _Head(thread, namespace, checkpoint_id, {})
        stored: tuple[Checkpoint, CheckpointMetadata, str | None] | None = None
        writes: list[tuple[str, str, int, str, Any]] = []
        async for item in self._list(thread, head.body):
            value = self._decode(item.data)
            if item.key == f"{head.body}checkpoint":
                stored = value
            else:
                writes.append(value)
        if stored is None:
            return None
        checkpoint, metadata, parent = stored
        writes.sort(key=lambda write: writes_sort_key(*write[:3]))
        return CheckpointTuple(
            config=_build_config(thread, namespace, checkpoint_id),
            checkpoint=checkpoint,
            metadata=metadata,
            parent_config=_build_config(thread, namespace, parent) if parent else None,
            pending_writes=[(task, channel, value) for _, task, _, channel, value in writes],
        )

    async def _find_latest(self, thread: str, namespace: str) -> str | None:
        found: list[str] = []
        prefix = f"head/{_quote(namespace)}/"
        async for item in self._list(thread, prefix, order="newest"):
            found.append(unquote(item.key.removeprefix(prefix)))
            if len(found) == _LATEST:
                break
        return max(found, default=None)

    async def _select_heads(self, config: RunnableConfig | None) -> AsyncIterator[_Head]:
        """The heads with the thread, the namespace and the id that a config names."""
        if config is None:
            names = self._reverie.list_collections(prefix=_THREADS, scope=self._scope)
            threads = [unquote(item.collection.removeprefix(_THREADS)) async for item in names]
        else:
            threads = [config["configurable"]["thread_id"]]
        wanted = (config or _NO_CONFIG)["configurable"]
        namespace, checkpoint_id = wanted.get("checkpoint_ns"), wanted.get("checkpoint_id")
        for thread in threads:
            async for head in self._list_heads(thread):
                if namespace in (None, head.namespace) and checkpoint_id in (None, head.id):
                    yield head

    async def _list_heads(self, thread: str) -> AsyncIterator[_Head]:
        async for item in self._list(thread, "head/"):
            _, namespace, checkpoint_id = item.key.split("/")
            yield _Head(thread, unquote(namespace), unquote(checkpoint_id), self._decode(item.data))

    async def _delete(self, heads: Sequence[_Head]) -> None:
        """Deletes checkpoints with their writes, heads last, so that a broken call can resume."""
        for head in heads:
            keys = [item.key async for item in self._list(head.thread, head.body)]
            keys.append(head.key)
            await self._reverie.delete_documents(
                _name_thread(head.thread), keys=keys, scope=self._scope
            )

    async def _put(
        self, thread: str, documents: Sequence[dict[str, Any]], *, if_absent: bool = False
    ) -> None:
        if documents:
            await self._reverie.put_documents(
                _name_thread(thread), documents, scope=self._scope, if_absent=if_absent
            )

    def _list(self, thread: str, prefix: str, **more: Any) -> AsyncIterator[Any]:
        return self._reverie.list_documents(
            _name_thread(thread), prefix=prefix, scope=self._scope, **more
        )

    def _encode(self, value: Any) -> str:
        """The name of the encoding, a line end, and the encoded value."""
        encoding, data = self._serde.dumps_typed(value)
        return base64.b64encode(encoding.encode() + b"\n" + data).decode()

    def _decode(self, data: str) -> Any:
        encoding, _, encoded = base64.b64decode(data).partition(b"\n")
        return self._serde.loads_typed((encoding.decode(), encoded))


_NO_CONFIG: Final[RunnableConfig] = {"configurable": {}}


def _read_config(config: RunnableConfig) -> tuple[str, str, str | None]:
    """The thread, the namespace, and the checkpoint if it is named."""
    found = config["configurable"]
    return str(found["thread_id"]), found.get("checkpoint_ns", ""), get_checkpoint_id(config)


def _build_config(thread: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    found = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": found}


def _name_thread(thread: str) -> str:
    return f"{_THREADS}{_quote(thread)}"


def _quote(part: str) -> str:
    return quote(part, safe="")
