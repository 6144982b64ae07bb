"""Reads the text of a picture by a language model."""

from __future__ import annotations

from pydantic import BaseModel, Field

from reverie.domain.access.principals import Principal
from reverie.domain.formats.pictures import MAX_TEXT
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import get_prompt


class _PictureAnswer(BaseModel):
    text: str = Field(max_length=4 * MAX_TEXT)


async def read_picture_text(
    model: LanguageModel, principal: Principal, data: bytes, media_type: str
) -> str:
    """What is written and shown in a picture; empty if the model does not say."""
    try:
        answer = await model.ask(
            principal.tenant,
            get_prompt("picture"),
            "The picture is attached.",
            _PictureAnswer,
            UsageTally(principal),
            picture=(data, media_type),
        )
    except LanguageModelError:
        return ""
    return " ".join(answer.text.split())[:MAX_TEXT]
