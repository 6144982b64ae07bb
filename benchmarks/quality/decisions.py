"""Measures whether what reaches an agent holds what was decided, in talks and in commits.

Run from the root of the project: `python -m benchmarks.quality.decisions [talks|history|silence]`.
Needs the data of sde-bench. Talks with a decision and decoys are digested; each bug report is
asked. `hit@k`: something of the deciding talk or commit is among the first k. `words`: the share of
the rule's content words in the first 1,200 tokens (4 characters each). `noise`: the share of those
tokens that is from elsewhere. `later`: of amended rules, the later talk stands first. The row *the
message alone* is the whole deciding message, as if nothing else were given.
Rules are chosen on the first half of the tasks, and reported on the other.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.quality.question_sets import DATA
from benchmarks.quality.recall_on_sessions import Bm25
from benchmarks.support.common import open_quiet_run, parser, show, wait_until_enriched
from reverie.testing import servers
from reverie.testing.models import model_home
from tests.support.real_transcripts import listed
from tests.support.stack import Stack, eventually, running_stack

FOLDER = DATA / "sde"
PARTS = ("talks", "history", "silence")
MAX_CHARS = 4_800
KS = (1, 3, 5, 10)
HEADINGS = ["", *(f"hit@{k}" for k in KS), "words", "noise", "later"]
_DULL = frozenset(
    word
    for line in (
        "the and for with from that this are not was were has have only any all but its into per",
        "each one two when then than which who whose how what out off under over",
    )
    for word in line.split()
)


Talk = Sequence[Mapping[str, str]]
Hits = Sequence[tuple[object, str]]
Ask = Callable[[str, Mapping[str, Any]], Awaitable[Hits]]


def content_words(text: str) -> set[str]:
    words = re.findall(r"[a-z0-9_]+", text.lower())
    return {w for w in words if (len(w) > 2 or w.isdigit()) and w not in _DULL}


@dataclass(frozen=True)
class TaskScore:
    """The result of one task: rank of the first right hit, shares of words and noise."""

    rank: int
    words: float
    noise: float
    later_first: bool | None


def score_task(task: Mapping[str, Any], gold: Sequence[object], hits: Hits) -> TaskScore:
    """Scores the hits of one task, best first, each with its source."""
    rank = next((n for n, (source, _) in enumerate(hits, 1) if source in gold), 99)
    text, used, other = "", 0, 0
    for source, content in hits:
        part = content[: max(0, MAX_CHARS - used)]
        used += len(part)
        other += 0 if source in gold else len(part)
        text += " " + part
    policy = content_words(task["policy"])
    later = None
    if task["source"].endswith("amended"):
        later = next((source for source, _ in hits if source in gold), None) == gold[-1]
    share = len(policy & content_words(text)) / max(len(policy), 1)
    return TaskScore(rank, share, other / max(used, 1), later)


def build_row(label: str, scores: Sequence[TaskScore]) -> list[str]:
    """The figures of some tasks as a row of the table."""
    count = len(scores)
    hits = [sum(s.rank <= k for s in scores) / count for k in KS]
    means = [sum(s.words for s in scores) / count, sum(s.noise for s in scores) / count]
    later = [s.later_first for s in scores if s.later_first is not None]
    figures = [f"{figure:.3f}" for figure in (*hits, *means)]
    return [f"{label} ({count})", *figures, f"{sum(later)}/{len(later)}"]


async def measure_rows(
    label: str, tasks: Sequence[Mapping[str, Any]], gold: Mapping[str, Sequence[object]], ask: Ask
) -> list[list[str]]:
    """The rows of one way of asking: the half that is chosen on, and the other."""
    halves: tuple[list[TaskScore], list[TaskScore]] = ([], [])
    for number, task in enumerate(tasks):
        hits = await ask(f"{task['bug_report']} ({task['module']})", task)
        halves[number % 2].append(score_task(task, gold[task["task_id"]], hits))
    names = (f"{label}, first half", f"{label}, other half")
    return [build_row(name, half) for name, half in zip(names, halves, strict=True) if half]


def build_baseline(documents: Iterable[tuple[object, str]]) -> Ask:
    """BM25 over the raw texts, asked as the others are."""
    rows = list(documents)
    index = Bm25({str(place): text for place, (_, text) in enumerate(rows)})

    async def ask(query: str, task: Mapping[str, Any]) -> Hits:
        del task
        return [rows[int(place)] for place in index.best(query, max(KS))]

    return ask


async def hand_over(stack: Stack, project: str, talks: Sequence[Talk]) -> list[str]:
    """Hands the talks over as sessions, and waits until they are digested."""
    sessions: list[str] = []
    for talk in talks:
        start = {"agent": "dev", "project": project}
        session = (await stack.post("/v1/sessions/start", start))["session"]
        turns = [{"role": turn["role"], "content": turn["text"]} for turn in talk]
        await stack.post("/v1/turns", {"session": session, "turns": turns})
        await stack.post(f"/v1/sessions/{session}/end", {})
        sessions.append(session)

    async def digested() -> bool:
        runs = [run async for run in listed(stack, "/v1/dreams?limit=200")]
        done = {name for run in runs if run["status"] == "done" for name in run["sessions"]}
        return set(sessions) <= done

    await eventually(digested, seconds=600, pause=1.0)
    await wait_until_enriched(stack, 600)
    return sessions


async def measure_talks(stack: Stack, tasks: Sequence[Any], decoys: Sequence[Talk]) -> None:
    """Talks of the tasks among the decoys."""
    mine = [task for task in tasks if task["source"].startswith("conversation")]
    talks, gold = list(decoys), defaultdict(list)
    for task in mine:
        own = task["conversations"]
        for talk in own if isinstance(own[0], list) else [own]:
            gold[task["task_id"]].append(len(talks))
            talks.append(talk)
    numbers = {name: n for n, name in enumerate(await hand_over(stack, "talks", talks))}

    def recall(**fields: Any) -> Ask:
        async def ask(query: str, task: Mapping[str, Any]) -> Hits:
            del task
            body = {"query": query, "scopes": ["project/talks"], "limit": 10}
            answer = await stack.post("/v1/recall", body | {"budget_tokens": 1200} | fields)
            return [
                (numbers.get(hit["provenance"]["session"], -1), hit["content"])
                for hit in answer["memories"]
            ]

        return ask

    async def preflow(query: str, task: Mapping[str, Any]) -> Hits:
        start = {"agent": "dev", "project": "talks"}
        session = (await stack.post("/v1/sessions/start", start))["session"]
        body = {"session": session, "query": query, "files": [task["module"]]}
        hits: list[tuple[object, str]] = []
        for item in (await stack.post("/v1/preflow", body))["items"]:
            if item["layer"] == "on_demand":
                memory = await stack.get(f"/v1/memories/{item['id']}")
                session = memory["provenance"]["session"]
                hits.append((numbers.get(session, -1), item["text"]))
        return hits

    baseline = build_baseline((n, turn["text"]) for n, talk in enumerate(talks) for turn in talk)
    ways = {
        "BM25": baseline,
        "recall": recall(),
        "recall with turns": recall(include=["turns"]),
        "preflow": preflow,
    }
    rows = [row for name, ask in ways.items() for row in await measure_rows(name, mine, gold, ask)]
    show(f"Decisions in talks, among {len(decoys)} others", HEADINGS, rows)


async def measure_history(stack: Stack, tasks: Sequence[Any]) -> None:
    """Deciding commits among a real history, each undone later under a misleading subject."""
    mine = [task for task in tasks if task.get("decision_subject")]
    lines = (FOLDER / "boltons-history.jsonl").read_text("utf-8").splitlines()
    commits = [json.loads(line) for line in lines][::-1]
    gold: dict[str, Sequence[object]] = {}
    for number, task in enumerate(mine):
        sha, place = f"{number + 17:02x}" * 20, len(commits) * (number + 1) // (len(mine) + 2)
        files, at = [["M", task["module"]]], commits[place]["at"]
        gold[task["task_id"]] = [sha]
        commits.insert(
            place,
            {"sha": sha, "at": at, "subject": task["decision_subject"],
             "body": task["decision_rationale"], "files": files},
        )  # fmt: skip
        commits.append(
            {"sha": f"{number + 17:02x}" * 19 + "ff", "at": "2026-08-01T00:00:00Z",
             "subject": task["cause_subject"], "body": "", "files": files},
        )  # fmt: skip
    for commit in commits:
        await stack.post("/v1/git/changes", _build_change(commit))
    await wait_until_enriched(stack, 600)

    async def recall(query: str, task: Mapping[str, Any]) -> Hits:
        del task
        body = {"query": query, "scopes": ["project/history"], "limit": 10, "budget_tokens": 1200}
        answer = await stack.post("/v1/recall", body)
        return [
            ((hit["provenance"]["git"] or {}).get("commit"), hit["content"])
            for hit in answer["memories"]
        ]

    texts = {commit["sha"]: f"{commit['subject']}\n{commit['body']}" for commit in commits}

    async def deciding_message(query: str, task: Mapping[str, Any]) -> Hits:
        del query
        return [(sha, texts[str(sha)]) for sha in gold[task["task_id"]]]

    baseline = build_baseline(texts.items())
    ways = {"BM25": baseline, "recall": recall, "the message alone": deciding_message}
    rows = [row for name, ask in ways.items() for row in await measure_rows(name, mine, gold, ask)]
    show(f"Decisions in commits, among {len(commits)}", HEADINGS, rows)


def _build_change(commit: Mapping[str, Any]) -> dict[str, Any]:
    names = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "added"}
    files = [
        {"path": file[-1], "status": names[file[0][0]]}
        | ({"old_path": file[1]} if file[0][0] == "R" else {})
        for file in commit["files"]
    ]
    message = {"subject": commit["subject"], "body": commit["body"]}
    head = {"sha": commit["sha"], "committed_at": commit["at"], **message}
    return {
        "project": "history",
        "branch": "main",
        "after": commit["sha"],
        "commits": [head],
        "files": files,
    }


async def measure_silence(stack: Stack, tasks: Sequence[Any], decoys: Sequence[Talk]) -> None:
    """Every bug report in a project of other sessions: how many receive nothing."""
    await hand_over(stack, "silence", decoys[:60])
    rows = []
    for name, half in (("first half", tasks[::2]), ("other half", tasks[1::2])):
        silent, tokens = 0, 0
        for task in half:
            start = {"agent": "dev", "project": "silence"}
            session = (await stack.post("/v1/sessions/start", start))["session"]
            body = {"session": session, "query": task["bug_report"]}
            items = (await stack.post("/v1/preflow", body))["items"]
            given = [item["text"] for item in items if item["layer"] == "on_demand"]
            silent += not given
            tokens += sum(map(len, given)) // 4
        figures = [f"{silent / len(half):.3f}", f"{tokens / len(half):.0f}"]
        rows.append([f"{name} ({len(half)})", *figures])
    show("Unrelated prompts", ["", "nothing given", "tokens"], rows)


async def measure(run: servers.TestRun, parts: Sequence[str]) -> None:
    """Starts a Reverie and prints a table for each part."""
    tasks = json.loads((FOLDER / "tasks-dev.json").read_text("utf-8"))
    decoys = [talk["turns"] for talk in json.loads((FOLDER / "decoys.json").read_text("utf-8"))]
    with servers.fresh_database(run) as database, servers.own_nats(run) as nats:
        async with running_stack(database, nats.url, model_home()) as stack:
            if "talks" in parts:
                await measure_talks(stack, tasks, decoys)
            if "history" in parts:
                await measure_history(stack, tasks)
            if "silence" in parts:
                await measure_silence(stack, tasks, decoys)


def _check_part(name: str) -> str:
    if name not in PARTS:
        raise ValueError(name)
    return name


def main() -> int:
    """0; 2 where the set is not there."""
    arguments = parser(__doc__)
    # argparse refuses an empty list where there are choices.
    arguments.add_argument("parts", nargs="*", type=_check_part, metavar="|".join(PARTS))
    parts = arguments.parse_args().parts or PARTS
    if not FOLDER.exists():
        print(f"decisions are left out: {FOLDER} is not there")
        return 2
    with open_quiet_run() as run:
        asyncio.run(measure(run, parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
