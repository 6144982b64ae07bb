"""Other ways to put a question, by a language model where one is set: what an answer would say.

The model is sent the beginning of the question, without the secrets of the vault.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from reverie.domain.errors import Unavailable
from reverie.domain.kinds import Kind
from reverie.domain.known_secrets import knowing
from reverie.domain.question import READ_CHARS
from reverie.domain.redaction import redact
from reverie.inference.asking import Tally, Unanswered
from reverie.inference.fencing import fenced
from reverie.inference.language import LanguageModel
from reverie.inference.prompts import prompt
from reverie.recall.recorder import KnownOf

MOST = 3
LONGEST = 300
KEPT = 1_000
"""Answers that a process keeps, so that a question asked again costs nothing and finds the same."""

_Kind = Literal[
    "decision", "convention", "preference", "bug", "lesson", "spec", "task", "skill", "context"
]


class _Told(BaseModel):
    questions: list[str] = Field(max_length=20)
    kinds: list[_Kind] = Field(default_factory=list, max_length=20)


@dataclass(frozen=True)
class Rephrased:
    """Other ways to put a question, and the kinds that would answer it."""

    questions: tuple[str, ...] = ()
    kinds: frozenset[Kind] = frozenset()


AS_IT_IS = Rephrased()


class Rephraser:
    """Asks the model once for each question of a tenant; the caller sets the deadline."""

    def __init__(self, model: LanguageModel, known_of: KnownOf) -> None:
        self._model, self._known_of = model, known_of
        self._kept: OrderedDict[tuple[int, str], Rephrased] = OrderedDict()

    async def rephrase(self, tenant: int, text: str) -> Rephrased:
        """The other ways. Raises `Unavailable` where the model gives no answer."""
        place = tenant, text[:READ_CHARS]
        if place in self._kept:
            self._kept.move_to_end(place)
            return self._kept[place]
        with knowing(await self._known_of(tenant), lambda _: False):
            data = fenced([("question", redact(place[1]).text)])
        try:
            told = await self._model.ask(tenant, prompt("rephrase"), data, _Told, Tally())
        except Unanswered as error:
            raise Unavailable("the language model", str(error)) from error
        made = _rephrased(told)
        self._kept[place] = made
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return made


def _rephrased(told: _Told) -> Rephrased:
    plain = (" ".join(one.split()) for one in told.questions)
    fit = [one for one in plain if 0 < len(one) <= LONGEST]
    return Rephrased(tuple(dict.fromkeys(fit))[:MOST], frozenset(map(Kind, told.kinds)))
