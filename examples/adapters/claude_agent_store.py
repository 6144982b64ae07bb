"""A session of the Claude Agent SDK goes on where only Reverie knows of it.

    REVERIE_API_KEY=rv_... python examples/adapters/claude_agent_store.py

The model is scripted, so no account is needed. Leave `env` out to use your own.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import replace

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, project_key_for_directory, query

from reverie.adapters.claude_agent_sdk import ReverieSessionStore
from reverie.client import AsyncReverie
from reverie.testing.chat_server import ChatAnswer, ChatRequest, chat_server

URL = os.environ.get("REVERIE_URL", "http://127.0.0.1:3456")
DECISION = "Decided: prices are whole numbers of cents, because floats lost money."


def answer(request: ChatRequest) -> ChatAnswer:
    """What the model says: it knows of the decision what the transcript tells."""
    if "Why?" not in request.last:
        return ChatAnswer(DECISION)
    return ChatAnswer("Because floats lost money." if DECISION in request.texts else "Who knows?")


async def ask(prompt: str, options: ClaudeAgentOptions) -> ResultMessage:
    """The result of one prompt."""
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            return message
    raise RuntimeError("the agent gave no result")


async def main() -> None:
    """Asks on one machine, and goes on upon another."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        async with (
            chat_server(answer) as model,
            AsyncReverie(URL, os.environ["REVERIE_API_KEY"]) as reverie,
        ):
            store = ReverieSessionStore(reverie, project="shop")
            model_env = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"}
            options = ClaudeAgentOptions(
                cwd=os.getcwd(),
                session_store=store,
                env={**model_env, "CLAUDE_CONFIG_DIR": first},
            )
            decided = await ask("How do we store prices?", options)
            print(decided.result)
            elsewhere = replace(
                options,
                resume=decided.session_id,
                env={**model_env, "CLAUDE_CONFIG_DIR": second},
            )
            print((await ask("Why?", elsewhere)).result)
            project = project_key_for_directory(os.getcwd())
            [summary] = [
                one
                for one in await store.list_sessions(project)
                if one["session_id"] == decided.session_id
            ]
            print("kept:", summary["session_id"] == decided.session_id)


if __name__ == "__main__":
    asyncio.run(main())
