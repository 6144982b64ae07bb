"""Measures whether the relevance tells questions that memories answer from others.

Run from the root of the project: `python -m benchmarks.quality.relevance [english|chinese]`.
Answered: questions about short notes, of DevMemBench, of LoCoMo, and bug reports of sde-bench, each
asked of their own project; and of Chinese notes, in the half of the notes that holds the answer.
Unrelated: the same questions asked of other projects, those of DevMemBench that nothing answers,
every bug report of sde-bench asked of the talks that are no answer, coding prompts of other
projects, and general prompts. Notes and DevMemBench are not asked of each other: both are about web
shops, and answer each other's questions. `--fit` prints the
coefficients of `reverie.domain.retrieval.relevance`, fitted on the first half of the questions: a
logistic regression over the best hit of each answer, by iteratively reweighted least squares, with
both classes of equal weight. AUC and shares are of the other half.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.decisions import hand_over
from benchmarks.quality.question_sets import DATA, QuestionSet, locomo_turns, own, read_locomo
from benchmarks.quality.recall import _chosen, fill
from benchmarks.quality.unrelated_prompts import (
    CHINESE_PROMPTS,
    CODING_PROMPTS,
    GENERAL_PROMPTS,
)
from benchmarks.support.common import open_quiet_run, parser, show, wait_until_enriched
from reverie.domain.retrieval.relevance import DEFAULT_THRESHOLD, Likeness, compute_relevance
from reverie.inference.model_catalogue import DEFAULT_MODEL, MULTILINGUAL_MODEL, SPARSE_MODEL
from reverie.testing import servers
from reverie.testing.models import model_home
from tests.support.stack import Stack, running_stack

LANGUAGES = ("english", "chinese")
LIMIT = 12
LOCOMO_QUESTIONS = 50
SDE_DECOYS = 60
COLUMNS = {
    "cosine, sparse": (0, 1, 2, 3, 4),
    "cosine": (0, 1, 3, 4),
    "sparse": (0, 2, 3, 4),
    "neither": (0, 3, 4),
}


@dataclass(frozen=True)
class QuestionGroup:
    """Questions asked of some scopes, which answer all of them or none."""

    name: str
    is_answered: bool
    questions: Sequence[str]
    scopes: Sequence[str]


@dataclass(frozen=True)
class RatedQuestion:
    """A question, and a row for each hit: 1, then the likeness, the length as its logarithm.

    What is not known is NaN.
    """

    group: QuestionGroup
    is_held_out: bool
    rows: NDArray[np.float64]
    relevance: float


def project_scopes(*projects: str) -> list[str]:
    return [f"project/{project}" for project in projects]


async def prepare_english(stack: Stack) -> AsyncIterator[QuestionGroup]:
    """Stores the public sets that are there; the questions of each, and of the others."""
    notes = own("identifiers")
    await fill(stack, notes)
    questions = [question.text for question in notes.questions]
    groups = [
        *await prepare_devmembench(stack),
        *await prepare_sde(stack),
        QuestionGroup("identifiers", True, questions, notes.scopes),
        *await prepare_locomo(stack),
    ]
    answered = [group for group in groups if group.is_answered]
    for group in groups:
        yield group
    for place, group in enumerate(answered):
        other = answered[(place + 1) % len(answered)]
        for elsewhere in (other,) if other is not group else ():
            name = f"{group.name} of {elsewhere.name}"
            yield QuestionGroup(name, False, group.questions, elsewhere.scopes)
        if place < 4:
            yield QuestionGroup(f"coding of {group.name}", False, CODING_PROMPTS, group.scopes)
            yield QuestionGroup(f"general of {group.name}", False, GENERAL_PROMPTS, group.scopes)


async def prepare_devmembench(stack: Stack) -> list[QuestionGroup]:
    """Digests the sessions; the questions that they answer, and those that they do not."""
    folder, scopes = DATA / "devmembench", project_scopes("devmembench")
    if not folder.exists():
        return []
    sessions = json.loads((folder / "sessions.json").read_text("utf-8"))
    talks = [
        [{"role": turn["role"], "text": turn["content"]} for turn in session["messages"]]
        for session in sessions
    ]
    await hand_over(stack, "devmembench", talks)
    groups: dict[bool, list[str]] = {True: [], False: []}
    for question in json.loads((folder / "questions-dev.json").read_text("utf-8")):
        groups[bool(question["haystackSessionIds"])].append(question["question"])
    return [
        QuestionGroup("DevMemBench", True, groups[True], scopes),
        QuestionGroup("DevMemBench, no answer", False, groups[False], scopes),
    ]


async def prepare_sde(stack: Stack) -> list[QuestionGroup]:
    """Digests the talks; the bug reports that they answer, and all of them of other talks."""
    folder = DATA / "sde"
    if not folder.exists():
        return []
    tasks = json.loads((folder / "tasks-dev.json").read_text("utf-8"))
    decoys = [talk["turns"] for talk in json.loads((folder / "decoys.json").read_text("utf-8"))]
    talks, reports = list(decoys), []
    for task in tasks:
        if task["source"].startswith("conversation"):
            told = task["conversations"]
            talks += told if isinstance(told[0], list) else [told]
            reports.append(task["bug_report"])
    await hand_over(stack, "sde", talks)
    await hand_over(stack, "decoys", decoys[:SDE_DECOYS])
    all_reports = list(dict.fromkeys(task["bug_report"] for task in tasks))
    return [
        QuestionGroup("sde-bench", True, reports, project_scopes("sde")),
        QuestionGroup("sde-bench of decoys", False, all_reports, project_scopes("decoys")),
    ]


async def prepare_locomo(stack: Stack) -> list[QuestionGroup]:
    """Stores the turns of the conversations; some questions of each."""
    if not (DATA / "locomo").exists():
        return []
    choice, groups = random.Random(3), []
    for number, talk in enumerate(locomo_turns(read_locomo())):
        await fill(stack, talk)
        questions = [question.text for question in talk.questions]
        sample = choice.sample(questions, LOCOMO_QUESTIONS)
        groups.append(QuestionGroup(f"LoCoMo {number + 1}", True, sample, talk.scopes))
    return groups


async def prepare_chinese(stack: Stack) -> AsyncIterator[QuestionGroup]:
    """Stores the Chinese notes in two projects; each answers the questions about its half."""
    notes = own("chinese")
    subjects = sorted({document.name.split("-")[0] for document in notes.documents})
    halves = []
    for number in (0, 1):
        documents = [
            document
            for document in notes.documents
            if subjects.index(document.name.split("-")[0]) % 2 == number
        ]
        names = {document.name for document in documents}
        labelled = [question for question in notes.questions if question.gold <= names]
        halves.append(QuestionSet("Chinese", f"notes-{number + 1}", documents, labelled))
    for half in halves:
        await fill(stack, half)
    await _chosen(stack, [halves[1]])
    for number, half in enumerate(halves):
        questions = [question.text for question in half.questions]
        other = halves[1 - number]
        yield QuestionGroup(f"{half.project}", True, questions, half.scopes)
        yield QuestionGroup(f"{half.project} of {other.project}", False, questions, other.scopes)
        prompts = CHINESE_PROMPTS
        yield QuestionGroup(f"general of {half.project}", False, prompts, half.scopes)


async def ask_group(stack: Stack, group: QuestionGroup) -> list[RatedQuestion]:
    """Asks the questions of a group, and notes the likenesses that recall computes of its hits."""
    noted: list[Likeness] = []

    def note(likeness: Likeness, model: str) -> float:
        noted.append(likeness)
        return compute_relevance(likeness, model)

    rated = []
    with patch("reverie_services.recall.pipeline.state.compute_relevance", note):
        for text in group.questions:
            noted.clear()
            body = {"query": text, "scopes": group.scopes, "limit": LIMIT}
            answer = await stack.post("/v1/recall", body)
            assert not answer["degraded"], answer["degraded"]
            rows = np.array([[1, *hit] for hit in noted], dtype=float).reshape(-1, 5)
            rows[:, 4] = np.log1p(rows[:, 4])
            is_held_out = zlib.crc32(text.encode()) % 2 == 1
            rated.append(RatedQuestion(group, is_held_out, rows, answer["relevance"] or 0.0))
    return rated


def select_known(
    rated: Sequence[RatedQuestion], columns: Sequence[int]
) -> tuple[list[NDArray[np.float64]], NDArray[np.bool_]]:
    """The hits of each question with these likenesses known, and whether it is answered."""
    known = [
        (rows, question.group.is_answered)
        for question in rated
        if len(rows := question.rows[~np.isnan(question.rows[:, columns]).any(axis=1)][:, columns])
    ]
    return [rows for rows, _ in known], np.array([is_answered for _, is_answered in known])


def fit_coefficients(
    rated: Sequence[RatedQuestion], columns: Sequence[int], rounds: int = 12, ridge: float = 1e-3
) -> NDArray[np.float64]:
    """Fits a logistic regression; each round takes the hit that the last one rates best."""
    rows, is_answered = select_known(rated, columns)
    answered = is_answered.astype(float)
    share = answered.mean()
    weights = np.where(answered == 1, 0.5 / share, 0.5 / (1 - share))
    fitted = np.zeros(len(columns))
    fitted[1] = 8.0
    for _ in range(rounds):
        best = np.array([hits[np.argmax(hits @ fitted)] for hits in rows])
        fitted = np.zeros(len(columns))
        for _ in range(60):
            rating = 1 / (1 + np.exp(-best @ fitted))
            gradient = best.T @ (weights * (rating - answered)) + ridge * fitted
            curvature = (weights * rating * (1 - rating))[:, None] * best
            hessian = best.T @ curvature + ridge * np.eye(len(columns))
            fitted -= np.linalg.solve(hessian, gradient)
    return fitted


def build_figures(ratings: NDArray[np.float64], is_answered: NDArray[np.bool_]) -> list[str]:
    """AUC, and the shares answered and silent at the threshold."""
    answered, unrelated = ratings[is_answered], ratings[~is_answered]
    auc = np.mean(answered[:, None] > unrelated[None])
    shares = np.mean(answered >= DEFAULT_THRESHOLD), np.mean(unrelated < DEFAULT_THRESHOLD)
    return [f"{figure:.3f}" for figure in (auc, *shares)]


def report(model: str, rated: Sequence[RatedQuestion], fits: bool) -> None:
    """Prints the shares of each group and of all, and what a fit gives."""
    held_out = [question for question in rated if question.is_held_out]
    chosen_on = [question for question in rated if not question.is_held_out]
    rows = []
    for group in dict.fromkeys(question.group.name for question in rated):
        of = [question for question in held_out if question.group.name == group]
        ratings = np.array([question.relevance for question in of])
        given = np.mean(ratings >= DEFAULT_THRESHOLD)
        quartiles = np.quantile(ratings, (0.05, 0.5, 0.95))
        figures = [f"{figure:.2f}" for figure in (given, *quartiles)]
        expected = "answered" if of[0].group.is_answered else "nothing"
        rows.append([f"{group} ({len(of)})", expected, *figures])
    title = f"Relevance by {model}, other half of the questions"
    show(title, ["", "expected", f">= {DEFAULT_THRESHOLD}", "5 %", "median", "95 %"], rows)
    ratings = np.array([question.relevance for question in held_out])
    is_answered = np.array([question.group.is_answered for question in held_out])
    rows = [["as it is", "", *build_figures(ratings, is_answered)]]
    for name, columns in COLUMNS.items() if fits else ():
        fitted = fit_coefficients(chosen_on, columns)
        known, is_answered = select_known(held_out, columns)
        best = np.array([(hits @ fitted).max() for hits in known])
        figures = build_figures(1 / (1 + np.exp(-best)), is_answered)
        whole = np.zeros(5)
        whole[list(columns)] = fitted
        rows.append([name, ", ".join(f"{weight:.2f}" for weight in whole), *figures])
    headings = ["known", "bias, cosine, sparse, words, length", "AUC", "answered", "silent"]
    show(f"All {len(held_out)} questions of that half", headings, rows)


async def measure(
    run: servers.TestRun,
    prepare: Callable[[Stack], AsyncIterator[QuestionGroup]],
    model: str,
    fits: bool,
) -> None:
    """Stores the sets in a Reverie of its own, asks, and prints."""
    home = model_home(DEFAULT_MODEL, SPARSE_MODEL)
    shape: dict[str, Any] = {"auto_multilingual_model": True}
    with servers.fresh_database(run) as database, servers.own_nats(run) as nats:
        async with running_stack(database, nats.url, home, **shape) as stack:
            groups = [group async for group in prepare(stack)]
            await wait_until_enriched(stack, 900)
            rated = [question for group in groups for question in await ask_group(stack, group)]
    report(model, rated, fits)


def main() -> int:
    """0; 2 where the public sets are asked for and none is there."""
    arguments = parser(__doc__)
    arguments.add_argument("languages", nargs="*", choices=LANGUAGES)
    arguments.add_argument("--fit", action="store_true", help="also print fitted coefficients")
    given = arguments.parse_args()
    languages = given.languages or LANGUAGES
    if "english" in languages and not DATA.exists():
        print(f"relevance is left out: {DATA} is not there")
        return 2
    with open_quiet_run() as run:
        if "english" in languages:
            asyncio.run(measure(run, prepare_english, DEFAULT_MODEL, given.fit))
        if "chinese" in languages:
            asyncio.run(measure(run, prepare_chinese, MULTILINGUAL_MODEL, given.fit))
    return 0


if __name__ == "__main__":
    sys.exit(main())
