"""The engine beside the running system, with a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from reverie.embedded.ports import find_free_port
from reverie.runtime.service import start_service
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from reverie_services.engine import app
from tests.support.stack import Stack

ASKS = "Write it down."
"""What makes the scripted model call a tool that waits for a person."""


def answer_shortly(asked: ChatRequest) -> ChatAnswer:
    """A call that waits for a person if it is told to write, else a word.

    The question comes first: what memory has to say follows it.
    """
    call = ToolUse("write_file", {"path": "log.txt", "content": "x"})
    wants = ASKS in asked.texts[0] and not asked.is_after_tool
    return ChatAnswer(calls=(call,)) if wants else ChatAnswer("Aye.")


def engine_settings(model_url: str, folder: Path) -> dict[str, Any]:
    """The settings of a system whose gateway serves an engine."""
    endpoint = {"provider": "openai", "model": "stub", "url": f"{model_url}/v1"}
    return {
        "engine_enabled": True,
        "engine_port": find_free_port(),
        "engine_folder": folder,
        "engine_models": SecretStr(json.dumps({"default": endpoint})),
    }


@asynccontextmanager
async def run_engine(stack: Stack) -> AsyncIterator[None]:
    """The engine of a system with these settings."""
    settings = stack.settings.model_copy(update={"gateway_url": stack.url})
    async with (
        app.open_service(settings) as service,
        start_service(service, settings, port=settings.engine_port),
    ):
        yield
