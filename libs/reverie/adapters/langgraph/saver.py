"""A LangGraph checkpointer: the checkpoints of a graph's threads, as documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from reverie.adapters.langgraph.blocking import SyncOrAsync
from reverie.adapters.langgraph.checkpoints import Checkpoints
from reverie.client import AsyncReverie, Reverie


class ReverieSaver(BaseCheckpointSaver[int]):
    """Keeps checkpoints in `scope`; that of the key, unless it is given.

    Checkpoints are bytes, which Reverie does not look into: a secret in a state is stored with it.
    `serde=EncryptedSerializer.from_pycryptodome_aes()` of LangGraph seals them.
    """

    def __init__(
        self,
        reverie: AsyncReverie | Reverie,
        *,
        scope: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._calls = SyncOrAsync(reverie)
        self._scope = scope

    @property
    def _checkpoints(self) -> Checkpoints:
        # LangGraph copies a saver and gives the copy another serializer.
        return Checkpoints(self._calls.client, self._scope, self.serde)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or the latest of its thread."""
        return await self._calls.run(self._checkpoints.get(config))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `aget_tuple`."""
        return self._calls.run_blocking(self._checkpoints.get(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints, the latest first: of a thread, or of all without `config`."""
        found = self._checkpoints.list_tuples(config, filter or {}, before, limit)
        async for item in self._calls.iterate(found):
            yield item

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """As `alist`."""
        found = self._checkpoints.list_tuples(config, filter or {}, before, limit)
        return self._calls.iterate_blocking(found)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint, whose parent is that of `config`; returns the config of it."""
        return await self._calls.run(self._checkpoints.put(config, checkpoint, metadata))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `aput`."""
        return self._calls.run_blocking(self._checkpoints.put(config, checkpoint, metadata))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what a task wrote after a checkpoint; the same again changes nothing."""
        await self._calls.run(self._checkpoints.put_writes(config, writes, task_id, task_path))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As `aput_writes`."""
        self._calls.run_blocking(self._checkpoints.put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Deletes all of a thread."""
        await self._calls.run(self._checkpoints.delete_thread(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        """As `adelete_thread`."""
        self._calls.run_blocking(self._checkpoints.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs; looks through those of all threads."""
        await self._calls.run(self._checkpoints.delete_for_runs(run_ids))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `adelete_for_runs`."""
        self._calls.run_blocking(self._checkpoints.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all of a thread to another."""
        await self._calls.run(self._checkpoints.copy_thread(source_thread_id, target_thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `acopy_thread`."""
        self._calls.run_blocking(self._checkpoints.copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes all but the latest checkpoint of each namespace, or all with `delete`.

        Ancestors that the latest one needs for its delta channels stay.
        """
        await self._calls.run(self._checkpoints.prune(thread_ids, strategy))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `aprune`."""
        self._calls.run_blocking(self._checkpoints.prune(thread_ids, strategy))
