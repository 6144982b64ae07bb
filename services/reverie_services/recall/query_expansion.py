"""Expands a question with rephrasings and likely kinds from a language model, cached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cachetools import LRUCache
from pydantic import BaseModel, Field

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.kinds import Kind
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.domain.retrieval.question_parsing import MAX_PARSED_CHARS
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import fence_items, get_prompt

MAX_REPHRASINGS = 3
MAX_QUESTION_LENGTH = 300
MAX_CACHED_ANSWERS = 1_000
"""The number of cached answers, so that a repeated question costs nothing and finds the same."""

_AnswerKind = Literal[
    "decision", "convention", "preference", "bug", "lesson", "spec", "task", "skill", "context"
]


class _RephrasingAnswer(BaseModel):
    questions: list[str] = Field(max_length=20)
    kinds: list[_AnswerKind] = Field(default_factory=list, max_length=20)


@dataclass(frozen=True)
class ExpandedQuery:
    """Other ways to put a question, and the kinds that would answer it."""

    questions: tuple[str, ...] = ()
    kinds: frozenset[Kind] = frozenset()


NO_EXPANSION = ExpandedQuery()


class QueryExpander:
    """Asks the model once for each question of a tenant; the caller sets the deadline."""

    def __init__(self, model: LanguageModel, load_redactor: RedactorLoader) -> None:
        self._model, self._load_redactor = model, load_redactor
        self._cache: LRUCache[tuple[int, str], ExpandedQuery] = LRUCache(MAX_CACHED_ANSWERS)

    async def expand(self, principal: Principal, text: str) -> ExpandedQuery:
        """Returns rephrasings. Raises `Unavailable` if the model gives no answer."""
        tenant, question = cache_key = principal.tenant, text[:MAX_PARSED_CHARS]
        if cache_key in self._cache:
            return self._cache[cache_key]
        redactor = await self._load_redactor(tenant)
        data = fence_items([("question", redactor.redact(question).text)])
        try:
            answer = await self._model.ask(
                tenant, get_prompt("rephrase"), data, _RephrasingAnswer, UsageTally(principal)
            )
        except LanguageModelError as error:
            raise Unavailable("the language model", str(error)) from error
        questions = (" ".join(question.split()) for question in answer.questions)
        valid = [question for question in questions if 0 < len(question) <= MAX_QUESTION_LENGTH]
        expanded = ExpandedQuery(
            tuple(dict.fromkeys(valid))[:MAX_REPHRASINGS], frozenset(map(Kind, answer.kinds))
        )
        self._cache[cache_key] = expanded
        return expanded
