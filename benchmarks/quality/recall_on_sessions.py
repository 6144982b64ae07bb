"""Measures recall on labelled questions about real sessions, next to BM25 over the turns.

Run from the root of the project: `python -m benchmarks.quality.recall_on_sessions`. Needs the
real transcripts.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.support.common import open_quiet_run, parser, show, wait_until_enriched
from reverie.testing import servers
from reverie.testing.models import model_home
from tests.support.real_transcripts import (
    TRANSCRIPTS,
    Fed,
    Question,
    answers,
    feed,
    listed,
    questions,
    transcripts,
)
from tests.support.stack import Stack, running_stack

DEPTHS = (1, 5, 10)
K1, B = 1.2, 0.75
"""Okapi BM25's usual constants (Robertson and Zaragoza 2009)."""


def terms(text: str) -> list[str]:
    """Lower-case words and numbers, no stemming, no stop words."""
    return re.findall(r"[a-z0-9]+", text.lower())


class Bm25:
    """Okapi BM25 over whole texts, in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._counts = {key: Counter(terms(text)) for key, text in texts.items()}
        self._lengths = {key: sum(counts.values()) for key, counts in self._counts.items()}
        self._average = sum(self._lengths.values()) / len(self._lengths)
        self._spread = Counter(term for counts in self._counts.values() for term in counts)

    def best(self, query: str, limit: int) -> list[str]:
        """The keys of the best texts, best first."""
        asked = set(terms(query))
        scores = {key: self._score(key, asked) for key in self._counts}
        return sorted(scores, key=lambda key: (-scores[key], key))[:limit]

    def _score(self, key: str, asked: set[str]) -> float:
        counts, share = self._counts[key], self._lengths[key] / self._average
        return sum(
            self._idf(term) * counts[term] * (K1 + 1) / (counts[term] + K1 * (1 - B + B * share))
            for term in asked
            if term in counts
        )

    def _idf(self, term: str) -> float:
        many, found = len(self._counts), self._spread[term]
        return math.log(1 + (many - found + 0.5) / (found + 0.5))


Ranking = Sequence[bool]
"""Whether each hit, best first, answers the question."""


def figures(rankings: Sequence[Ranking]) -> list[str]:
    """any@1, any@5, any@10, and the mean reciprocal rank within ten."""
    many = len(rankings)
    anys = [sum(any(one[:depth]) for one in rankings) / many for depth in DEPTHS]
    mrr = sum(1 / (one.index(True) + 1) for one in rankings if any(one)) / many
    return [f"{figure:.3f}" for figure in (*anys, mrr)]


async def through(stack: Stack, fed: Fed, include: list[str]) -> list[Ranking]:
    """Every question, asked through the gateway."""
    rankings: list[Ranking] = []
    for question in questions():
        body = {"query": question.text, "include": include, "limit": max(DEPTHS)}
        found = await stack.post("/v1/recall", body)
        assert not found["degraded"], found["degraded"]
        rankings.append([answers(question, hit, fed) for hit in found["memories"]])
    return rankings


async def floor(stack: Stack, fed: Fed) -> list[Ranking]:
    """Every question, asked of BM25 over the turns as they are stored."""
    texts = {
        turn["id"]: turn["content"]
        for session in fed.sessions.values()
        async for turn in listed(stack, f"/v1/sessions/{session}/turns?limit=200")
    }
    index, deepest = Bm25(texts), max(DEPTHS)
    judge: Callable[[Question, str], bool] = lambda asked, turn: answers(asked, as_hit(turn), fed)  # noqa: E731
    return [[judge(one, turn) for turn in index.best(one.text, deepest)] for one in questions()]


def as_hit(turn: str) -> dict[str, Any]:
    """A turn in the shape of a hit of recall."""
    return {"provenance": {"turns": [turn]}}


async def measure(run: servers.TestRun) -> None:
    """Feeds all sessions to a system of its own, asks, and prints."""
    with servers.fresh_database(run) as database, servers.own_nats(run) as nats:
        async with running_stack(database, nats.url, model_home()) as stack:
            fed = await feed(stack, transcripts())
            await wait_until_enriched(stack, 120)
            memories = [one async for one in listed(stack, "/v1/memories?limit=200")]
            rows = [
                ["recall, memories only", *figures(await through(stack, fed, []))],
                ["recall, memories and turns", *figures(await through(stack, fed, ["turns"]))],
                ["BM25 over the turns", *figures(await floor(stack, fed))],
            ]
    cited = sum(len(one["provenance"]["turns"]) for one in memories) / len(memories)
    title = f"{len(questions())} questions about {len(fed.sessions)} real sessions"
    show(title, ["", *(f"any@{depth}" for depth in DEPTHS), "MRR@10"], rows)
    print(f"{len(fed.turns)} turns, {len(memories)} memories of {cited:.1f} turns each on average;")
    print("a memory answers where one of its turns does.")


def main() -> int:
    """0, or 2 where the transcripts are not there."""
    if not TRANSCRIPTS.exists():
        print(f"recall_real is left out: the real transcripts are not in {TRANSCRIPTS}")
        return 2
    with open_quiet_run() as run:
        asyncio.run(measure(run))
    return 0


if __name__ == "__main__":
    parser(__doc__).parse_args()
    sys.exit(main())
