"""Memory for agents of Pydantic AI: a capability, and its tools as a toolset.

`Agent(model, capabilities=[ReverieMemory(client, project="shop")])`
"""

from __future__ import annotations

from copy import copy
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.toolsets.abstract import AbstractToolset

from reverie.adapters.common import INSTRUCTIONS, make_tools
from reverie.client import AsyncReverie


class ReverieToolset(FunctionToolset[Any]):
    """The tools `recall` and `remember`. `scope`: where memories are read and written."""

    def __init__(self, client: AsyncReverie, *, scope: str | None = None) -> None:
        super().__init__(make_tools(client, scope), id="reverie")


class ReverieMemory(AbstractCapability[Any]):
    """Adds context before a run, tools during it, and hands the conversation over after it.

    Runs of one conversation are one session. `session` names it; by default it is the
    `conversation_id` of the run. A memory that does not answer fails the run: errors are told.
    """

    def __init__(
        self,
        client: AsyncReverie,
        *,
        agent: str = "pydantic-ai",
        project: str | None = None,
        session: str | None = None,
    ) -> None:
        self.id = "reverie"
        self._client, self._agent, self._project = client, agent, project
        self._name = session
        self._tools = ReverieToolset(client, scope=f"project/{project}" if project else None)
        self._session = ""
        self._known = ""

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """A copy, so that runs at the same time do not mix."""
        return copy(self)

    def get_toolset(self) -> AbstractToolset[Any]:
        """The tools `recall` and `remember`."""
        return self._tools

    def get_instructions(self) -> Any:
        """How to use memory, and what it knows for this run."""

        def build_instructions(_: RunContext[Any]) -> str:
            return f"{INSTRUCTIONS}\n\n{self._known}".strip()

        return build_instructions

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Continues the session, and calls preflow for this prompt."""
        started = await self._client.start_session(
            self._agent,
            project=self._project,
            external_id=self._name or ctx.conversation_id,
            context_shown=True,
        )
        self._session = str(started.session)
        parts = [started.context or ""]
        if prompt := _text_of(ctx.prompt):
            parts.append((await self._client.preflow(self._session, prompt)).markdown)
        self._known = "\n\n".join(part for part in parts if part)

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Hands over the prompt and the answer; a repeated run adds nothing twice."""
        said = [("user", _text_of(ctx.prompt)), ("assistant", str(result.output))]
        turns = [
            {"role": role, "content": text, "external_id": f"{ctx.run_id}-{role}"}
            for role, text in said
            if text
        ]
        if turns:
            await self._client.append_turns(self._session, turns)
        return result


def _text_of(prompt: Any) -> str:
    """The words of a prompt, without its pictures and files."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(part for part in prompt or () if isinstance(part, str))
