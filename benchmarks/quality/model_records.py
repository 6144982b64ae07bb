"""Measures the decision records of a language model: quality, cost, and what the check drops.

Run from the root of the project: `python -m benchmarks.quality.model_records [checks|rules|model]`.
Needs the data of sde-bench. `checks`: shares of statements that the check accepts, by how they came
about. `rules`, `model`: the talks of `benchmarks.quality.decisions`, digested without and with a
model. The model is that of the settings (`REVERIE_LLM_PROVIDER`, `REVERIE_LLM_URL`, ...). Without
one, a scripted endpoint stands in for it: it answers with the records of the rules. Its figures
show that the path works and what the check costs; they say nothing about a model.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, NamedTuple

import structlog
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.quality.decisions import FOLDER, Talk, measure_talks
from benchmarks.support.common import parser, show
from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment, segment_turns
from reverie.domain.extraction.record_validation import (
    find_objection,
    find_quotation,
    read_content_words,
)
from reverie.domain.extraction.rule_extractor import extract_memories, read_topic
from reverie.domain.text.markdown import split_sentences
from reverie.domain.text.turns import TurnText
from reverie.runtime.settings.settings import Settings
from reverie.testing import servers
from reverie.testing.models import model_home
from tests.support.extraction import build_turns
from tests.support.stack import running_stack
from tests.support.stub_llm import LlmRequest, stub_llm

PARTS = ("checks", "rules", "model")
SCRIPTED = "scripted-from-rules"
_ITEM = re.compile(r'<item n="\d+" from="(\w+)[^"]*">\n(.*?)\n</item>', re.S)
_NAME = re.compile(r"`[^`]{3,}`|\b[a-z]+_[a-z_]+\b")
_NEGATION = re.compile(r"\b(?:not|never|no) ")
_VERB = re.compile(r"\b(must|should|is|are|will|can|does|do|was|were) ")


class MadeStatement(NamedTuple):
    """A statement, the quote that it is offered with, and the turns that it cites."""

    text: str
    quote: str
    cited: Sequence[TurnText]


def answer_by_rules(request: LlmRequest) -> dict[str, Any]:
    """The answer of the scripted endpoint: what rules read in the turns that it is shown."""
    turns = build_turns(*_ITEM.findall(request.text))
    reading = read_topic(TopicSegment(tuple(turns)))
    answer: dict[str, list[Any]] = {"decided": [], "found": [], "refused": [], "lasting": []}

    def state(text: str, turn: TurnText) -> dict[str, Any]:
        return {"text": text, "quote": text[:120], "turns": [turn.ordinal + 1]}

    for record in reading.records[:1]:
        for item in record.statements:
            part = "decided" if item.is_decided else "found"
            answer[part].append(state(item.text, item.turn))
        for refused in record.refused:
            numbers = [refused.turn.ordinal, refused.turn.ordinal + 1]
            answer["refused"].append(
                {"proposal": refused.proposal, "reason": refused.reason, "turns": numbers}
                | {"quote": refused.reason or refused.proposal}
            )
    kinds = ("convention", "preference", "task", "skill")
    lasting = [s for s in reading.lasting if s.kind.value in kinds]
    answer["lasting"] = [state(s.text, s.turn) | {"kind": s.kind.value} for s in lasting]
    problem = reading.records[0].problem if reading.records else ""
    return {**answer, "problem": problem}


@asynccontextmanager
async def find_model(settings: Settings) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    """The name of the model, and the settings that it needs beside those given."""
    roomy = {"llm_daily_calls": 1_000_000, "llm_daily_tokens": 1_000_000_000}
    if settings.llm_provider != "none":
        yield settings.llm_model, roomy
        return
    async with stub_llm() as (stub, url):
        stub.answer, stub.estimates_tokens = answer_by_rules, True
        address = {"llm_provider": "openai", "llm_url": f"{url}/v1", "llm_model": SCRIPTED}
        yield SCRIPTED, address | roomy


async def measure_digest(
    run: servers.TestRun, label: str, talks: int, overrides: Mapping[str, Any]
) -> None:
    """Digests the talks and prints their measures, and the use of a model if one is set."""
    tasks = json.loads((FOLDER / "tasks-dev.json").read_text("utf-8"))
    decoys: list[Talk] = [
        talk["turns"] for talk in json.loads((FOLDER / "decoys.json").read_text("utf-8"))
    ]
    with servers.fresh_database(run) as database, servers.own_nats(run) as nats:
        async with running_stack(database, nats.url, model_home(), **overrides) as stack:
            started = perf_counter()
            await measure_talks(stack, tasks, decoys[:talks])
            seconds = perf_counter() - started
            async with stack.http.get(f"{stack.urls['dream']}/metrics") as answer:
                page = await answer.text()
    samples: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = [sample.labels.get(n, "") for n in ("task", "outcome", "direction", "result")]
            samples[(sample.name, *filter(None, labels))] += sample.value
    _print_usage(label, samples, seconds)


def _print_usage(label: str, samples: Mapping[tuple[str, ...], float], seconds: float) -> None:
    def total(*key: str) -> int:
        return int(sum(value for name, value in samples.items() if name[: len(key)] == key))

    results = {
        key[1]: int(value)
        for key, value in samples.items()
        if key[0] == "reverie_dream_model_statements_total"
    }
    kept = results.pop("kept", 0)
    dropped_count = sum(results.values())
    stated = kept + dropped_count
    dropped = ", ".join(f"{name} {count}" for name, count in sorted(results.items())) or "none"
    rows = [
        ["seconds in all", f"{seconds:.0f}"],
        ["requests", str(total("reverie_llm_calls_total", "record"))],
        ["tokens sent", str(total("reverie_llm_tokens_total", "record", "sent"))],
        ["tokens received", str(total("reverie_llm_tokens_total", "record", "received"))],
        ["statements kept", str(kept)],
        ["share dropped", f"{dropped_count / stated:.3f}" if stated else "–"],
        ["dropped", dropped],
    ]
    rows += [
        [f"records: {key[1]}", str(int(value))]
        for key, value in sorted(samples.items())
        if key[0] == "reverie_dream_records_total"
    ]
    show(f"Digest by {label}", ["", ""], rows)


def iter_made_statements(
    talks: Sequence[Talk], choose: random.Random
) -> Iterator[tuple[str, MadeStatement]]:
    """Statements copied from the talks and falsified, each with the sort of falsification."""
    copied = [made for talk in talks for made in _copy_statements(talk)]
    names = [name for made in copied for name in _NAME.findall(made.text)]
    for made in copied:
        text, quote, cited = made
        yield "copied", made
        if number := re.search(r"\d+", text):
            other = f"{text[: number.start()]}{int(number[0]) + 1}{text[number.end() :]}"
            yield "another number", MadeStatement(other, quote, cited)
        if (name := _NAME.search(text)) and names:
            foreign = choose.choice(names)
            if foreign.strip("`").lower() not in cited[0].content.lower():
                other = f"{text[: name.start()]}{foreign}{text[name.end() :]}"
                yield "another name", MadeStatement(other, quote, cited)
        negated = _NEGATION.sub("", text, count=1)
        negated = _VERB.sub(r"\1 not ", text, count=1) if negated == text else negated
        if negated != text:
            yield "negated", MadeStatement(negated, quote, cited)
        foreign_text = choose.choice(copied).text
        if foreign_text not in cited[0].content:
            yield "of another talk, its own quote", MadeStatement(foreign_text, foreign_text, cited)
            yield "of another talk, a true quote", MadeStatement(foreign_text, quote, cited)


def _copy_statements(talk: Talk) -> Iterator[MadeStatement]:
    turns = build_turns(*((turn["role"], turn["text"]) for turn in talk))
    for memory in extract_memories(segment_turns(turns)):
        parts = memory.record or {}
        for text in (*parts.get("decided", ()), *parts.get("found", ())):
            if cited := [turn for turn in turns if text in turn.content]:
                yield MadeStatement(text, text, cited)


def iter_rephrased(tasks: Sequence[Mapping[str, Any]]) -> Iterator[MadeStatement]:
    """The sentences of a commit that records the decision of a talk, held against the talk."""
    rationales = {
        task["task_id"].replace("-history", ""): task["decision_rationale"]
        for task in tasks
        if task.get("decision_rationale")
    }
    for task in tasks:
        if task["source"] == "conversation" and task["task_id"] in rationales:
            said = ((turn["role"], turn["text"]) for turn in task["conversations"])
            turns = build_turns(*said)
            sentences = [s for turn in turns for s in split_sentences(turn.content)]
            for text in split_sentences(rationales[task["task_id"]]):
                words = read_content_words(text)
                quote = max(sentences, key=lambda s: len(words & read_content_words(s)))
                yield MadeStatement(text, quote, turns)


def _is_accepted(made: MadeStatement) -> bool:
    quotation = find_quotation(made.text, made.quote, made.cited)
    return quotation is not None and find_objection(made.text, made.cited, quotation) is None


def measure_checks() -> None:
    """Prints the share of statements that the check accepts, by how they came about."""
    tasks = json.loads((FOLDER / "tasks-dev.json").read_text("utf-8"))
    talks = [talk["turns"] for talk in json.loads((FOLDER / "decoys.json").read_text("utf-8"))]
    accepted: dict[str, tuple[list[bool], list[bool]]] = defaultdict(lambda: ([], []))
    for half in (0, 1):
        made = list(iter_made_statements(talks[half::2], random.Random(7)))
        conversations = [task for task in tasks if task["source"] == "conversation"][half::2]
        history = [task for task in tasks if task["source"] == "history"]
        made += [("rephrased", item) for item in iter_rephrased([*conversations, *history])]
        for sort, item in made:
            accepted[sort][half].append(_is_accepted(item))
    rows = [
        [sort, *(f"{sum(half) / len(half):.3f} ({len(half)})" if half else "–" for half in halves)]
        for sort, halves in accepted.items()
    ]
    show("Share accepted by the check", ["statement", "first half", "other half"], rows)


async def measure(run: servers.TestRun, parts: Sequence[str], talks: int) -> None:
    """Starts a Reverie for each way to write records."""
    settings = Settings()
    if "rules" in parts:
        await measure_digest(run, "rules", talks, {"llm_provider": "none"})
    if "model" in parts:
        async with find_model(settings) as (name, overrides):
            await measure_digest(run, f"model {name}", talks, overrides)


def _check_part(name: str) -> str:
    if name not in PARTS:
        raise ValueError(name)
    return name


def main() -> int:
    """0; 2 where the set is not there."""
    arguments = parser(__doc__)
    # argparse refuses an empty list where there are choices.
    arguments.add_argument("parts", nargs="*", type=_check_part, metavar="|".join(PARTS))
    arguments.add_argument("--talks", type=int, default=140, help="talks beside those of the tasks")
    asked = arguments.parse_args()
    parts = asked.parts or PARTS
    if not FOLDER.exists():
        print(f"records of a model are left out: {FOLDER} is not there")
        return 2
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    if "checks" in parts:
        measure_checks()
    if set(parts) == {"checks"}:
        return 0
    run = servers.create_run()
    membership = servers.join_run(run)
    try:
        asyncio.run(measure(run, parts, asked.talks))
    finally:
        os.close(membership)
        servers.end_run(run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
