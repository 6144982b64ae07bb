"""Measures recall quality through REST, next to BM25 over the same documents.

Run from the root of the project: `python -m benchmarks.quality.recall identifiers chinese`.
`any@k`: at least one of the documents that answer is among the first k; `all@k`: every one;
`share@k`: what share of them.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import bm25s
import Stemmer
from pydantic import SecretStr

from benchmarks.quality.question_sets import LabelledQuestion, QuestionSet, sets_named
from benchmarks.support.common import open_quiet_run, parser, show, wait_until_enriched
from reverie.cli.operate.reindex import reembed_tenants
from reverie.domain.text.characters import is_mostly_east_asian
from reverie.inference.model_catalogue import DEFAULT_MODEL, MULTILINGUAL_MODEL, SPARSE_MODEL
from reverie.runtime.settings.settings import Settings
from reverie.store.platform.api_keys import list_tenants
from reverie.testing import servers
from reverie.testing.models import model_home
from reverie_services.ingest.enrich.model_selection import SAMPLE_CHARS, SAMPLE_SIZE
from reverie_services.recall.settings import RecallSettings, build_recall_settings
from tests.support.stack import Stack, eventually, running_stack
from tests.support.store_setup import admin_rows

DEPTH = 10
BATCH = 100
COLUMNS = ("any@5", "all@5", "any@10", "all@10", "share@10", "MRR@10")
ABLATIONS: Mapping[str, dict[str, Any]] = {
    "without words": {"arm_weights": {"words": 0.0, "meaning": 0.55}},
    "without meaning": {"arm_weights": {"words": 0.45, "meaning": 0.0}},
    "without the sparse arm": {"sparse_weight": 0.0},
    "by reciprocal ranks": {"fusion": "reciprocal"},
    "without files and entities": {"node_fan_out": 0},
    "without diversity": {"mmr_lambda": 1.0},
}
"""Recall settings that leave a stage out."""
Ranking = list[str]
"""The names of the documents found, best first."""


@dataclass(frozen=True)
class StoredQuestionSet:
    """A set that has been remembered: which documents each memory holds."""

    set: QuestionSet
    held: Mapping[str, list[str]]


class Bm25Baseline:
    """BM25 with stemming and stop words (bm25s) over the documents of a set."""

    def __init__(self, filled: QuestionSet) -> None:
        self._names = [one.name for one in filled.documents]
        self._stem = Stemmer.Stemmer("english")
        self._index = bm25s.BM25(k1=1.2, b=0.75)
        self._index.index(self._tokens([one.text for one in filled.documents]), show_progress=False)

    def best(self, query: str) -> Ranking:
        """The best documents."""
        found, scores = self._index.retrieve(
            self._tokens([query]), k=min(DEPTH, len(self._names)), show_progress=False
        )
        return [self._names[i] for i, score in zip(found[0], scores[0], strict=True) if score > 0]

    def _tokens(self, texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=self._stem, show_progress=False)


def figures(pairs: Iterable[tuple[LabelledQuestion, Ranking]]) -> list[str]:
    """The figures of `COLUMNS`."""
    pairs = list(pairs)
    mean: Callable[[Callable[[LabelledQuestion, Ranking], float]], str] = lambda of: (  # noqa: E731
        f"{sum(of(asked, found) for asked, found in pairs) / len(pairs):.3f}"
    )
    return [
        mean(lambda asked, found: bool(asked.gold & set(found[:5]))),
        mean(lambda asked, found: asked.gold <= set(found[:5])),
        mean(lambda asked, found: bool(asked.gold & set(found[:DEPTH]))),
        mean(lambda asked, found: asked.gold <= set(found[:DEPTH])),
        mean(lambda asked, found: len(asked.gold & set(found[:DEPTH])) / len(asked.gold)),
        mean(_reciprocal),
    ]


def _reciprocal(asked: LabelledQuestion, found: Ranking) -> float:
    places = [place for place, name in enumerate(found[:DEPTH], start=1) if name in asked.gold]
    return 1 / places[0] if places else 0.0


async def fill(stack: Stack, questions: QuestionSet) -> StoredQuestionSet:
    """Remembers every document in its session."""
    sessions: dict[str, str] = {}
    for group in dict.fromkeys(one.group for one in questions.documents if one.group):
        body = {"agent": "reader", "project": questions.project, "external_id": group}
        sessions[group] = (await stack.post("/v1/sessions/start", body))["session"]
    held: dict[str, list[str]] = defaultdict(list)
    for start in range(0, len(questions.documents), BATCH):
        part = questions.documents[start : start + BATCH]
        items = [
            {
                "content": one.text,
                "scope": f"project/{one.project or questions.project}",
                "kind": "context",
                "session": sessions.get(one.group or ""),
                "valid_from": one.at.isoformat() if one.at else None,
            }
            for one in part
        ]
        items = [{name: value for name, value in item.items() if value} for item in items]
        answer = await stack.post("/v1/remember/batch", {"items": items})
        for one, item in zip(part, answer["items"], strict=True):
            held[item["id"]].append(one.name)
    return StoredQuestionSet(questions, held)


async def ask(
    stack: Stack, url: str, filled: StoredQuestionSet, arms: Counter[str], **more: Any
) -> list[tuple[LabelledQuestion, Ranking]]:
    """Every question of a set, through the gateway at `url`; counts the arms of what answers."""
    pairs = []
    for asked in filled.set.questions:
        body = {"query": asked.text, "scopes": filled.set.scopes, "limit": DEPTH}
        found = await stack.post(f"{url}/v1/recall", body | more)
        assert not found["degraded"], found["degraded"]
        ranking: Ranking = []
        for hit in found["memories"]:
            names = filled.held.get(hit["id"]) or filled.held.get(hit.get("merged_from", ""), [])
            ranking += [name for name in names if name not in ranking]
            if asked.gold & set(names):
                arms.update(hit["arms"].keys())
                arms["answers"] += 1
        pairs.append((asked, ranking))
    return pairs


def by_name(sets: Iterable[tuple[str, list[tuple[LabelledQuestion, Ranking]]]]) -> dict[str, Any]:
    """The parts of a set together, its halves apart."""
    together: dict[str, list[tuple[LabelledQuestion, Ranking]]] = defaultdict(list)
    for name, pairs in sets:
        for asked, found in pairs:
            together[f"{name}, {asked.half}" if asked.half else name].append((asked, found))
    return together


def report(title: str, found: Mapping[str, Any], floor: Mapping[str, Any]) -> None:
    """A table a set: the whole and each type of question, beside the floor."""
    for name, pairs in found.items():
        rows = []
        types = [None, *sorted({asked.type for asked, _ in pairs})]
        for type_ in types if len(types) > 2 else [None]:
            of = [one for one in pairs if type_ in (None, one[0].type)]
            least = [one for one in floor[name] if type_ in (None, one[0].type)]
            label = type_ or "all"
            rows.append([f"{label} ({len(of)})", *figures(of)])
            rows.append(["  BM25", *figures(least)])
        show(f"{name}: {title}", ["", *COLUMNS], rows)


async def measure(
    run: servers.TestRun, sets: Sequence[QuestionSet], ablations: bool, asked: str | None
) -> None:
    """Remembers the sets in a system of its own, asks, and prints.

    By the model `asked` for; None: by what a tenant goes by where nothing is set.
    """
    model = asked or DEFAULT_MODEL
    home = model_home(model, SPARSE_MODEL)
    shape: dict[str, Any] = {"embedding_model": model, "auto_multilingual_model": asked is None}
    with servers.fresh_database(run) as database, servers.own_nats(run) as nats:
        async with running_stack(database, nats.url, home, **shape) as stack:
            if model != DEFAULT_MODEL:
                settings = Settings(
                    home=home, embedding_model=model, database_url=SecretStr(stack.admin_url)
                )
                await reembed_tenants(settings, stack.admin_url, list_tenants(stack.admin_url))
            filled = [await fill(stack, one) for one in sets]
            await wait_until_enriched(stack, 900)
            if asked is None:
                model = await _chosen(stack, sets)
            # As autovacuum does in time: without statistics the planner guesses badly.
            await asyncio.to_thread(admin_rows, stack.admin_url, "analyze")
            floors = by_name(
                (one.set.name, [(q, Bm25Baseline(one.set).best(q.text)) for q in one.set.questions])
                for one in filled
            )
            arms: Counter[str] = Counter()
            found = by_name(
                [(one.set.name, await ask(stack, stack.url, one, arms)) for one in filled]
            )
            report(f"recall by {model}", found, floors)
            _arms(arms)
            if ablations:
                again = partial(running_stack, database, nats.url, home, embedding_model=model)
                await _without(stack, again, filled, found)


async def _chosen(stack: Stack, sets: Sequence[QuestionSet]) -> str:
    """The model that ingest chose for the tenant, once the gateway asks by it too."""
    texts = [one.text[:SAMPLE_CHARS] for each in sets for one in each.documents]
    if not is_mostly_east_asian(texts[-SAMPLE_SIZE:]):
        return DEFAULT_MODEL

    async def moved() -> bool:
        # The gateway loads the model when it is first asked for.
        await stack.post("/v1/recall", {"query": texts[-1], "limit": 1})
        models = (await stack.get("/v1/models"))["models"]
        ready = [one for one in models if one["state"] == "ready" and one["active"]]
        return MULTILINGUAL_MODEL in [one["name"] for one in ready]

    await eventually(moved, seconds=900, pause=0.5)
    return MULTILINGUAL_MODEL


def _arms(arms: Counter[str]) -> None:
    answers = arms.pop("answers")
    rows = [[name, f"{count / answers:.2f}"] for name, count in sorted(arms.items())]
    show("Share of the answering hits that each arm had", ["", "share"], rows)


async def _without(
    stack: Stack,
    again: Callable[..., AbstractAsyncContextManager[Stack]],
    filled: Sequence[StoredQuestionSet],
    whole: Mapping[str, Any],
) -> None:
    """Each stage left out in turn, over the same memories."""
    names = list(whole)
    rows = [["as it is", *(_brief(whole[name]) for name in names)]]
    found = by_name(
        [(one.set.name, await ask(stack, stack.url, one, Counter(), depth=0)) for one in filled]
    )
    rows.append(["without the graph", *(_brief(found[name]) for name in names)])
    for label, overrides in ABLATIONS.items():
        build = partial(_build_ablated_settings, overrides)
        with patch("reverie_services.recall.app.build_recall_settings", build):
            async with again() as other:
                found = by_name(
                    [(one.set.name, await ask(stack, other.url, one, Counter())) for one in filled]
                )
        rows.append([label, *(_brief(found[name]) for name in names)])
    show("share@10 / MRR@10 with a stage left out", ["", *names], rows)


def _build_ablated_settings(overrides: Mapping[str, Any], settings: Settings) -> RecallSettings:
    return replace(build_recall_settings(settings), **overrides)


def _brief(pairs: list[tuple[LabelledQuestion, Ranking]]) -> str:
    *_, share, reciprocal = figures(pairs)
    return f"{share} / {reciprocal}"


def main() -> int:
    """Prints what there is; 2 where nothing is."""
    asked = parser(__doc__)
    asked.add_argument("sets", nargs="*", help="parts of their names, such as chinese; else all")
    asked.add_argument("--model", help="the embedding model to go by; unset: the one chosen")
    asked.add_argument("--ablations", action="store_true", help="and with each stage left out")
    given = asked.parse_args()
    sets = list(sets_named(given.sets))
    if not sets:
        print("quality is left out: there are no question sets")
        return 2
    with open_quiet_run() as run:
        asyncio.run(measure(run, sets, given.ablations, given.model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
