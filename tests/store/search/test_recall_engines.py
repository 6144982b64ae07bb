"""The recall index answers as Postgres does, before and after changes of every sort."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from reverie.domain.retrieval.ranking_facts import list_ids
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall.pipeline.state import RecallQuestion, RecallResult
from tests.support.made_up_memories import KINDS, MadeUpTenant
from tests.support.recall_engines import RecallEngines, ask, open_engines

READERS = (
    ("*",),
    ("project/*",),
    ("global", "project/a/*"),
    ("project/b",),
    ("project/a", "agent/bob"),
    ("project/none",),
)
TOLERANCE = 1e-4
MEMORIES, STEPS = 50, 32


@pytest.fixture
async def engines(database: DatabaseUrls) -> AsyncIterator[RecallEngines]:
    async with open_engines(database) as opened:
        yield opened


def describe(result: RecallResult) -> dict[str, dict[str, float]]:
    """What makes up the score of each candidate that may be answered."""
    state = result.state
    positions = state.is_eligible.nonzero()[0]
    return {
        str(scored.id): {
            "score": scored.score,
            "fused": scored.fused_score,
            **scored.factors,
            **{f"{arm} score": score for arm, score in scored.raw_scores.items()},
            "hops": float(len(scored.hops)),
            # The ratio of two scores that may be next to none, and both are compared.
            "successor": 1.0,
        }
        for scored in state.describe(positions)
    }


def check_same(first: RecallResult, second: RecallResult) -> None:
    """Both have the same memories with the same scores; ties may be in another order."""
    candidates, others = describe(first), describe(second)
    assert candidates.keys() == others.keys()
    for memory, figures in candidates.items():
        assert figures == pytest.approx(others[memory], abs=TOLERANCE), memory
    assert sorted(list_ids(first.state.facts.records[~first.state.is_eligible])) == sorted(
        list_ids(second.state.facts.records[~second.state.is_eligible])
    )
    for hit, other in zip(first.hits, second.hits, strict=True):
        assert hit.scored.score == pytest.approx(other.scored.score, abs=TOLERANCE)
        assert hit.item == other.item or hit.scored.score == pytest.approx(
            others[str(hit.item.id)]["score"], abs=2 * TOLERANCE
        )
        if hit.item == other.item:
            assert hit.relevance == pytest.approx(other.relevance, abs=10 * TOLERANCE)
    assert first.edges == second.edges


def make_question(tenant: MadeUpTenant) -> RecallQuestion:
    chance = tenant.chance
    statuses = ["active", "superseded", *(["archived"] if chance.random() < 0.3 else [])]
    return ask(
        tenant.make_question(),
        chance.choice(READERS),
        [kind.value for kind in chance.sample(KINDS, 4)] if chance.random() < 0.3 else None,
        chance.choice((3, 10, 40)),
        chance.choice((0, 1, 2)),
        status=statuses,
    )


@pytest.mark.parametrize("seed", range(2))
async def test_the_index_answers_as_postgres_does(engines: RecallEngines, seed: int) -> None:
    tenant = MadeUpTenant(engines.store, random.Random(seed))
    await tenant.fill(MEMORIES)
    await engines.load_index()
    changes = [*tenant.changes, *tenant.changes]
    tenant.chance.shuffle(changes)
    for change in changes[:STEPS]:
        check_same(*await engines.ask_both(make_question(tenant)))
        await change()
    assert await engines.holds_index()
    assert len(tenant.changes) * 2 == STEPS
