"""Calls that write, search, read and change memories."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import ClientBase, LazyModule, drop_none, if_match_header, quote_segment

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from reverie.client.parameters import RecallFields, RememberFields
    from reverie.contracts import context as of_context
    from reverie.contracts import recall as of_recall
    from reverie.contracts.memories import edits as of_edits
    from reverie.contracts.memories import memories as of_memories
    from reverie.contracts.memories import pictures as of_pictures
    from reverie.contracts.memories import typed_memories as of_tasks
else:
    of_context = LazyModule("reverie.contracts.context")
    of_edits = LazyModule("reverie.contracts.memories.edits")
    of_memories = LazyModule("reverie.contracts.memories.memories")
    of_pictures = LazyModule("reverie.contracts.memories.pictures")
    of_recall = LazyModule("reverie.contracts.recall")
    of_tasks = LazyModule("reverie.contracts.memories.typed_memories")

Id = UUID | str


class MemoryCalls(ClientBase):
    """Calls about memories; an `id` may be short."""

    async def remember(
        self, content: str, **fields: Unpack[RememberFields]
    ) -> of_memories.RememberResponse:
        """Stores a memory. `conflict`: another one is active under the key, and no reason given."""
        body = {"content": content, **fields}
        return await self.request(of_memories.RememberResponse, "POST", "/v1/remember", body=body)

    async def remember_batch(
        self, items: Sequence[Mapping[str, Any]]
    ) -> of_memories.RememberBatchResponse:
        """Stores up to 500 memories in one go; each item is answered, or refused, by itself."""
        body = {"items": list(items)}
        return await self.request(
            of_memories.RememberBatchResponse, "POST", "/v1/remember/batch", body=body
        )

    async def recall(self, query: str, **fields: Unpack[RecallFields]) -> of_recall.RecallResponse:
        """The memories nearest to a question, the best first; scores run from 0 to 1.

        `answered` says whether one of them is relevant enough. `degraded` names what could not be
        searched; the rest was.
        """
        body = {"query": query, **fields}
        return await self.request(of_recall.RecallResponse, "POST", "/v1/recall", body=body)

    async def recall_as_text(self, query: str, **fields: Unpack[RecallFields]) -> str:
        """Returns the recalled memories as fenced text for a prompt; empty if none answers.

        Text inside the fence is labelled as data, and is not ingested again as new.
        """
        from reverie.domain.context.text_rendering import render_memories

        answer = await self.recall(query, **fields)
        memories = answer.memories if answer.answered else []
        return render_memories([memory.model_dump(mode="json") for memory in memories], "")

    async def preflow(
        self,
        session: Id,
        query: str,
        *,
        before: str | None = None,
        scopes: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
        edited: Sequence[str] | None = None,
        tests: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        compacted: bool = False,
        include_seen: bool = False,
    ) -> of_context.PreflowResponse:
        """Returns the memories for a session's next turn, without those given before.

        With `before` "edit" or "command": those about the file or the command in `query`.
        """
        body = drop_none(
            session=session,
            query=query,
            before=before,
            scopes=scopes,
            files=files,
            edited=edited,
            tests=tests,
            budget_tokens=budget_tokens,
        )
        body |= {"compacted": compacted, "include_seen": include_seen}
        return await self.request(of_context.PreflowResponse, "POST", "/v1/preflow", body=body)

    async def predict(
        self,
        *,
        project: str | None = None,
        session: Id | None = None,
        branch: str | None = None,
        edited: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
        tests: Sequence[str] | None = None,
        limit: int = 5,
    ) -> of_context.PredictResponse:
        """The files that will likely be touched next, and what is known of them.

        `edited` files were edited lately, `files` are open, `tests` were run.
        """
        body = drop_none(
            project=project,
            session=session,
            branch=branch,
            edited=edited,
            files=files,
            tests=tests,
            limit=limit,
        )
        return await self.request(of_context.PredictResponse, "POST", "/v1/predict", body=body)

    async def get_context(
        self,
        *,
        project: str | None = None,
        session: Id | None = None,
        scopes: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
        budget_tokens: int | None = None,
    ) -> of_context.ContextResponse:
        """Returns the context for a start: of a `project`, a `session`, or all that the key may
        read.
        """
        query = drop_none(
            project=project,
            session=session,
            scopes=scopes,
            files=files,
            budget_tokens=budget_tokens,
        )
        return await self.request(of_context.ContextResponse, "GET", "/v1/context", query=query)

    async def get_memory(
        self, id: Id, *, as_of: datetime | None = None
    ) -> of_memories.MemoryDetail:
        """One memory with its neighbours; `as_of`: as it was known then."""
        return await self.request(
            of_memories.MemoryDetail,
            "GET",
            f"/v1/memories/{quote_segment(id)}",
            query=drop_none(as_of=as_of),
        )

    async def attach_picture(
        self, id: Id, data: bytes | str, *, name: str | None = None, text: str | None = None
    ) -> of_pictures.AttachPictureResponse:
        """Attaches a picture, by its bytes or in base64; the memory is found by its `text`."""
        encoded = data if isinstance(data, str) else base64.b64encode(data).decode()
        body = {"data": encoded, **drop_none(name=name, text=text)}
        path = f"/v1/memories/{quote_segment(id)}/pictures"
        return await self.request(of_pictures.AttachPictureResponse, "POST", path, body=body)

    def list_pictures(self, id: Id) -> AsyncIterator[of_pictures.PictureBody]:
        """The pictures of a memory, without their bytes."""
        path = f"/v1/memories/{quote_segment(id)}/pictures"
        return self.paginate(of_pictures.PicturePage, path, {})

    async def get_picture(self, id: Id, hash: str) -> of_pictures.PictureContent:
        """A picture with its bytes in base64."""
        path = f"/v1/memories/{quote_segment(id)}/pictures/{quote_segment(hash)}"
        return await self.request(of_pictures.PictureContent, "GET", path)

    async def remove_picture(self, id: Id, hash: str) -> of_pictures.RemovePictureResponse:
        """Removes a picture from a memory."""
        path = f"/v1/memories/{quote_segment(id)}/pictures/{quote_segment(hash)}"
        return await self.request(of_pictures.RemovePictureResponse, "DELETE", path)

    def list_memories(
        self,
        *,
        scope: str | None = None,
        kind: Sequence[str] | None = None,
        status: Sequence[str] | None = None,
        tag: str | None = None,
        key: str | None = None,
        session: Id | None = None,
        valid_at: datetime | None = None,
    ) -> AsyncIterator[of_memories.MemoryBody]:
        """All memories that pass, the newest first, read by the page."""
        query = drop_none(
            scope=scope,
            kind=kind,
            status=status,
            tag=tag,
            key=key,
            session=session,
            valid_at=valid_at,
        )
        return self.paginate(of_memories.MemoryPage, "/v1/memories", query)

    async def edit_memory(
        self, id: Id, changes: Mapping[str, Any], *, version: int | None = None
    ) -> of_edits.MemoryChangeResponse:
        """Changes fields of a memory. Raises `precondition_failed` if `version` is not current."""
        path, headers = f"/v1/memories/{quote_segment(id)}", if_match_header(version)
        return await self.request(
            of_edits.MemoryChangeResponse, "PATCH", path, body=changes, headers=headers
        )

    async def archive(self, id: Id, *, version: int | None = None) -> of_edits.MemoryChangeResponse:
        """Archives a memory: it is found only when asked for."""
        path, headers = f"/v1/memories/{quote_segment(id)}/archive", if_match_header(version)
        return await self.request(of_edits.MemoryChangeResponse, "POST", path, headers=headers)

    async def forget(self, id: Id, *, version: int | None = None) -> of_edits.ForgetMemoryResponse:
        """Forgets a memory: no answer has it. `restore` undoes it until `restorable_until`."""
        path, headers = f"/v1/memories/{quote_segment(id)}", if_match_header(version)
        return await self.request(of_edits.ForgetMemoryResponse, "DELETE", path, headers=headers)

    async def forget_batch(
        self,
        *,
        ids: Sequence[Id] | None = None,
        scope: str | None = None,
        keys: Sequence[str] | None = None,
        tag: str | None = None,
        status: Sequence[str] | None = None,
    ) -> of_edits.ForgetBatchResponse:
        """Forgets the memories of `ids` or of a `scope` that pass; repeat it while there is `more`.

        Without `status`, those of every status.
        """
        body = drop_none(scope=scope, keys=keys, tag=tag, status=status)
        if ids is not None:
            body["ids"] = [str(id) for id in ids]
        path = "/v1/memories/forget"
        return await self.request(of_edits.ForgetBatchResponse, "POST", path, body=body)

    async def erase(self, id: Id, *, reason: str | None = None) -> of_edits.EraseMemoryResponse:
        """Erases a memory at once and for good; returns a receipt of what was removed."""
        path, body = f"/v1/memories/{quote_segment(id)}/erase", drop_none(reason=reason)
        return await self.request(of_edits.EraseMemoryResponse, "POST", path, body=body)

    async def rollback(
        self, id: Id, version: int, *, reason: str | None = None
    ) -> of_edits.MemoryChangeResponse:
        """Brings back what `version` was, as a new version."""
        body = drop_none(version=version, reason=reason)
        return await self.request(
            of_edits.MemoryChangeResponse,
            "POST",
            f"/v1/memories/{quote_segment(id)}/rollback",
            body=body,
        )

    async def feedback(
        self,
        id: Id,
        verdict: Literal["approve", "edit", "discard"],
        *,
        content: str | None = None,
        reason: str | None = None,
    ) -> of_edits.MemoryChangeResponse:
        """Approves a memory, rewrites it, or discards it."""
        body = drop_none(verdict=verdict, content=content, reason=reason)
        return await self.request(
            of_edits.MemoryChangeResponse,
            "POST",
            f"/v1/memories/{quote_segment(id)}/feedback",
            body=body,
        )

    async def confirm(self, id: Id) -> of_edits.ConfirmMemoryResponse:
        """Confirms that a memory agrees with the current code, and clears its doubts."""
        return await self.request(
            of_edits.ConfirmMemoryResponse, "POST", f"/v1/memories/{quote_segment(id)}/confirm"
        )

    async def restore(self, id: Id) -> of_edits.RestoreMemoryResponse:
        """Restores a memory that was archived, or forgotten a short time ago."""
        return await self.request(
            of_edits.RestoreMemoryResponse, "POST", f"/v1/memories/{quote_segment(id)}/restore"
        )

    async def pin(self, id: Id) -> of_edits.MemoryChangeResponse:
        """Pins a memory: it does not fade, and is included in every start context."""
        return await self.request(
            of_edits.MemoryChangeResponse, "PUT", f"/v1/memories/{quote_segment(id)}/pin"
        )

    async def unpin(self, id: Id) -> of_edits.MemoryChangeResponse:
        """Unpins a memory."""
        return await self.request(
            of_edits.MemoryChangeResponse, "DELETE", f"/v1/memories/{quote_segment(id)}/pin"
        )

    def list_versions(self, id: Id) -> AsyncIterator[of_edits.MemoryVersionBody]:
        """The versions of a memory, the newest first."""
        return self.paginate(
            of_edits.MemoryHistoryPage, f"/v1/memories/{quote_segment(id)}/history"
        )

    async def get_provenance(self, id: Id) -> of_edits.MemoryProvenanceResponse:
        """Returns the origin of a memory: session, turns, commit, and the memories it replaced."""
        return await self.request(
            of_edits.MemoryProvenanceResponse, "GET", f"/v1/memories/{quote_segment(id)}/provenance"
        )

    def list_skills(self, *, scope: str | None = None) -> AsyncIterator[of_tasks.SkillBody]:
        """Skills, the newest first, with the places that a replay fills."""
        return self.paginate(of_tasks.SkillPage, "/v1/skills", drop_none(scope=scope))

    async def replay_skill(
        self, id: Id, values: Mapping[str, str] | None = None
    ) -> of_tasks.SkillReplayResponse:
        """A skill ready to follow, its places filled with `values`."""
        return await self.request(
            of_tasks.SkillReplayResponse,
            "GET",
            f"/v1/memories/{quote_segment(id)}/replay",
            query=values,
        )
