"""Requests to a model beside the conversation: a summary, and descriptions of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessage, UserContent
from pydantic_ai.models import Model

from reverie.store.engine.conversations import StoredImage
from reverie_services.engine.turn_state import TurnState
from reverie_services.engine.turns.capabilities import TurnBudget

Language = Literal["en", "zh"]
_SUMMARIZE = {
    "en": "Summarise this conversation in at most 300 words: decisions, open points, names.",
    "zh": "用最多 300 字概括这段对话:决定、未解决的问题、名称。",
}
_DESCRIBE = {
    "en": "Describe each image in one sentence, with the text that it shows. One line for each.",
    "zh": "用一句话描述每张图片,包括其中的文字。每张一行。",
}


async def summarize(
    model: Model,
    budget: TurnBudget,
    state: TurnState,
    language: Language,
    messages: Sequence[ModelMessage],
    max_chars: int,
) -> str:
    """A summary of messages: the last resort for a context that is too small."""
    lines = [str(part.content) for m in messages for part in m.parts if hasattr(part, "content")]
    text = "\n".join(lines)[-max_chars:]
    return await _ask(model, budget, state, _SUMMARIZE[language], [text])


async def describe_images(
    model: Model,
    budget: TurnBudget,
    state: TurnState,
    language: Language,
    images: Sequence[StoredImage],
) -> list[str]:
    """Descriptions of images, a line for each."""
    shown = [BinaryContent(image.data, media_type=image.media_type) for image in images]
    said = await _ask(model, budget, state, _DESCRIBE[language], shown)
    return [line.strip() for line in said.splitlines() if line.strip()]


async def _ask(
    model: Model,
    budget: TurnBudget,
    state: TurnState,
    instructions: str,
    content: Sequence[UserContent],
) -> str:
    agent: Agent[TurnState, str] = Agent(
        model, instructions=instructions, deps_type=TurnState, capabilities=[budget]
    )
    async with agent.run_stream(content, deps=state) as result:
        return await result.get_output()
