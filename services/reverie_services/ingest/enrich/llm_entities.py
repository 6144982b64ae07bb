"""Finds what a memory names with a language model, where rules found next to nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.entities.recognition import MAX_NAME, Entity, EntityType
from reverie.domain.extraction.content_checks import contains_instructions
from reverie.domain.extraction.record_validation import clean_line, is_named, read_content_words
from reverie.domain.redaction.redactor import Redactor
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_prompts import fence_items, get_prompt
from reverie.store.memories.enrichment import MemoryMentions
from reverie_services.ingest.enrich.llm_causes import CAUSAL_KINDS, MODEL_TIMEOUT

MAX_RULE_NAMES = 1
"""A model is asked where rules found no more than so many files and entities."""
MIN_CHARS, MAX_SHOWN_CHARS = 60, 4_000
MAX_NAMES, MAX_NAME_WORDS = 8, 4


class _NameAnswer(BaseModel):
    name: str = Field(max_length=400)
    type: Literal["package", "code", "service", "error"]


class NamesAnswer(BaseModel):
    """What a memory names."""

    names: list[_NameAnswer] = Field(max_length=40)


def may_have_unfound_names(mentions: MemoryMentions) -> bool:
    """Whether rules found next to nothing in a memory that should be about something."""
    memory = mentions.memory
    return (
        not memory.carried
        and Kind(memory.kind) in CAUSAL_KINDS
        and len(memory.content) >= MIN_CHARS
        and len(mentions.files) + len(mentions.entities) <= MAX_RULE_NAMES
    )


async def find_entities(
    model: LanguageModel, tenant: int, redactor: Redactor, content: str
) -> list[Entity]:
    """The entities that a model found and that the memory names. Raises `LanguageModelError`."""
    shown = redactor.redact(content[:MAX_SHOWN_CHARS]).text
    text = fence_items([("memory", shown)])
    answer = await model.ask(
        tenant, get_prompt("names"), text, NamesAnswer, time_limit=MODEL_TIMEOUT
    )
    return check_names(answer, shown)


def check_names(answer: NamesAnswer, content: str) -> list[Entity]:
    """The names that stand in a memory and can be names, each once."""
    found: dict[str, Entity] = {}
    for given in answer.names:
        name = clean_line(given.name).strip("`'\"“”").lower()
        if _is_name(name) and is_named(name, content):
            found.setdefault(name, Entity(EntityType(given.type), name))
    return list(found.values())[:MAX_NAMES]


def _is_name(name: str) -> bool:
    return (
        1 < len(name) <= MAX_NAME
        and len(name.split()) <= MAX_NAME_WORDS
        and bool(read_content_words(name))
        and not extract_paths(name)
        and not contains_instructions(name)
    )
