"""Calls of the engine: agents that talk in groups."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import ClientBase, LazyModule, drop_none, quote_segment

if TYPE_CHECKING:
    from reverie.contracts import engine as of_engine
else:
    of_engine = LazyModule("reverie.contracts.engine")

Id = UUID | str


class EngineCalls(ClientBase):
    """Calls about agents, groups and their turns. They need the engine to be enabled."""

    async def list_agents(self) -> of_engine.AgentList:
        """The agents that can be in a group, and the models and tools that they may have."""
        return await self.request(of_engine.AgentList, "GET", "/v1/agents")

    async def put_agent(self, name: str, spec: Mapping[str, Any]) -> of_engine.AgentInfo:
        """Creates or replaces an agent: `models`, `persona`, `language`, `mode`, `tools`, `ask`,
        `budget`. It needs an admin's key.
        """
        path = f"/v1/agents/{quote_segment(name)}"
        return await self.request(of_engine.AgentInfo, "PUT", path, body=spec)

    async def delete_agent(self, name: str) -> of_engine.AgentInfo:
        """Deletes an agent; one of the first five is then as it was. It needs an admin's key."""
        path = f"/v1/agents/{quote_segment(name)}"
        return await self.request(of_engine.AgentInfo, "DELETE", path)

    async def get_agent_spend(self) -> of_engine.SpendBody:
        """What agents spent today, and the limits."""
        return await self.request(of_engine.SpendBody, "GET", "/v1/agents/spend")

    def list_groups(self) -> AsyncIterator[of_engine.GroupBody]:
        """The groups, newest first."""
        return self.paginate(of_engine.GroupPage, "/v1/groups")

    async def create_group(
        self,
        agents: Sequence[str],
        *,
        name: str | None = None,
        project: str | None = None,
        answers: Literal["default", "everyone"] = "default",
    ) -> of_engine.GroupBody:
        """Creates a group of agents: one conversation, one session."""
        body = {"agents": list(agents), "answers": answers, **drop_none(name=name, project=project)}
        return await self.request(of_engine.GroupBody, "POST", "/v1/groups", body=body)

    async def post_message(
        self,
        group: Id,
        text: str,
        *,
        mentions: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
        images: Sequence[tuple[str, bytes]] = (),
        mode: str | None = None,
    ) -> of_engine.PostedMessage:
        """Says something; the turns that it causes go on by themselves.

        `images`: each with its type, as `image/png`.
        """
        body = {"text": text, "mentions": list(mentions), **drop_none(files=files, mode=mode)}
        if images:
            body["images"] = [
                {"media_type": kind, "data": b64encode(data).decode()} for kind, data in images
            ]
        path = f"/v1/groups/{quote_segment(group)}/messages"
        return await self.request(of_engine.PostedMessage, "POST", path, body=body)

    async def load_conversation(
        self, group: Id, *, after: int = 0, before: int | None = None, limit: int = 100
    ) -> of_engine.MessagePage:
        """What was said after a message, or last before one (0: the end), and the newest turns."""
        path = f"/v1/groups/{quote_segment(group)}/messages"
        query = drop_none(after=after or None, before=before, limit=limit)
        return await self.request(of_engine.MessagePage, "GET", path, query=query)

    async def get_image(self, group: Id, image: Id) -> of_engine.GroupImage:
        """An image of a message, with its bytes in base64."""
        path = f"/v1/groups/{quote_segment(group)}/images/{quote_segment(image)}"
        return await self.request(of_engine.GroupImage, "GET", path)

    async def watch_group(
        self, group: Id, *, after: int
    ) -> AsyncIterator[tuple[int, of_engine.EngineEvent]]:
        """Yields events with their positions, without end; a broken connection is reopened."""
        path = f"/v1/groups/{quote_segment(group)}/events"
        async for message in self._follow_events(path, {}, str(after)):
            body = json.loads(message.data)
            yield int(message.id), of_engine.EngineEvent.model_validate(body)

    async def approve_call(
        self, group: Id, turn: Id, call: str, approved: bool, *, reason: str = ""
    ) -> of_engine.StopResponse:
        """Approves or denies a tool call that waits for a person."""
        body = {"turn": str(turn), "call": call, "approved": approved, "reason": reason}
        path = f"/v1/groups/{quote_segment(group)}/approvals"
        return await self.request(of_engine.StopResponse, "POST", path, body=body)

    async def stop_turns(self, group: Id, *, turn: Id | None = None) -> of_engine.StopResponse:
        """Stops a turn, or all that are open."""
        body = drop_none(turn=str(turn) if turn else None)
        path = f"/v1/groups/{quote_segment(group)}/stop"
        return await self.request(of_engine.StopResponse, "POST", path, body=body)
