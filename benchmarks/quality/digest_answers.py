"""Compares answers from digested memories with answers from raw turns, at equal tokens.

Run from the root of the project: `python -m benchmarks.quality.digest_answers`. Needs
DevMemBench. Its sessions are handed over as turns and digested without a language model in one
project, and remembered turn by turn in another; every question is asked of both. `any` and `all`:
at least one, or every one, of the sessions that answer is in the provenance of the first ten
hits. `words`: the share of the answer's own words that stand in their texts.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.quality.question_sets import DATA
from benchmarks.support.common import open_quiet_run, parser, show, wait_until_enriched
from reverie.inference.token_counters import EstimatingTokenCounter
from reverie.testing import servers
from reverie.testing.models import model_home
from tests.support.real_transcripts import listed
from tests.support.stack import Stack, eventually, running_stack

FOLDER = DATA / "devmembench"
BUDGETS = (200, 400)
LIMIT = 10
MOST_SHARE = 0.30
Found = tuple[bool, bool, float, str]
DULL = frozenset(
    ["the", "and", "for", "with", "from", "that", "this", "are", "was", "not", "use", "into", "via"]
)


@dataclass(frozen=True)
class AskedProject:
    """A project that is asked, the session of each turn or memory by id, and its size in tokens."""

    project: str
    session_of: Mapping[str, str]
    tokens: int


def read(name: str) -> list[dict[str, Any]]:
    """A file of the set."""
    found: list[dict[str, Any]] = json.loads((FOLDER / name).read_text())
    return found


def words(text: str) -> set[str]:
    """The words that say something."""
    return {w for w in re.findall(r"[a-z0-9_./-]{3,}", text.lower()) if w not in DULL}


async def _start(stack: Stack, project: str, one: Mapping[str, Any]) -> str:
    body = {"agent": "dev", "project": project, "external_id": one["sessionId"]}
    session: str = (await stack.post("/v1/sessions/start", body))["session"]
    return session


async def digested(stack: Stack) -> AskedProject:
    """The sessions as turns, dreamt over."""
    sessions: dict[str, str] = {}
    for one in read("sessions.json"):
        session = sessions[one["sessionId"]] = await _start(stack, "digested", one)
        turns = [
            {"role": said["role"], "content": said["content"],
             "at": f"{one['metadata']['date']}T10:{n:02}:00Z"}
            for n, said in enumerate(one["messages"])
        ]  # fmt: skip
        await stack.post("/v1/turns", {"session": session, "turns": turns})
        await stack.post(f"/v1/sessions/{session}/end", {})
    await eventually(lambda: _all_dreamt(stack, set(sessions.values())), seconds=300, pause=0.5)
    names = {session: name for name, session in sessions.items()}
    session_of = dict(names)
    for session, name in names.items():
        async for turn in listed(stack, f"/v1/sessions/{session}/turns?limit=200"):
            session_of[turn["id"]] = name
    count = EstimatingTokenCounter().count
    memories = [one async for one in listed(stack, "/v1/memories?limit=200&scope=project/digested")]
    return AskedProject("digested", session_of, sum(count(one["content"]) for one in memories))


async def _all_dreamt(stack: Stack, sessions: set[str]) -> bool:
    runs = [run async for run in listed(stack, "/v1/dreams?limit=200")]
    done = {session for run in runs if run["status"] == "done" for session in run["sessions"]}
    return sessions <= done


async def raw(stack: Stack) -> AskedProject:
    """Every turn a memory."""
    names: dict[str, str] = {}
    tokens = 0
    count = EstimatingTokenCounter().count
    for one in read("sessions.json"):
        session = await _start(stack, "raw", one)
        names[session] = one["sessionId"]
        items = [
            {"content": said["content"], "scope": "project/raw", "kind": "context",
             "session": session, "valid_from": f"{one['metadata']['date']}T10:00:00Z"}
            for said in one["messages"]
        ]  # fmt: skip
        tokens += sum(count(item["content"]) for item in items)
        await stack.post("/v1/remember/batch", {"items": items})
    return AskedProject("raw", names, tokens)


async def ask(stack: Stack, side: AskedProject, budget: int) -> list[Found]:
    """For each question: any, all, the share of the answer's words, and its type."""
    found = []
    for one in read("questions-dev.json"):
        body = {
            "query": one["question"],
            "scopes": [f"project/{side.project}"],
            "limit": LIMIT,
            "budget_tokens": budget,
        }
        answer = await stack.post("/v1/recall", body)
        assert not answer["degraded"], answer["degraded"]
        gold, told = set(one["haystackSessionIds"]), answer["memories"]
        named = {
            side.session_of.get(name, "")
            for hit in told
            for name in (hit["provenance"]["session"], *hit["provenance"]["turns"])
        }
        sought = words(one["groundTruth"])
        held = sought & words(" ".join(hit["content"] for hit in told))
        share = len(held) / len(sought) if sought else 1.0
        found.append(
            (bool(gold & named) if gold else True, gold <= named, share, one["questionType"])
        )
    return found


def _row(label: str, found: Sequence[Found]) -> list[str]:
    many = len(found)
    figures = (sum(float(one[place]) for one in found) / many for place in range(3))
    return [f"{label} ({many})", *(f"{figure:.3f}" for figure in figures)]


async def measure(run: servers.TestRun) -> bool:
    """Feeds, asks, prints; whether the digest is small enough and loses nothing."""
    with servers.fresh_database(run) as database, servers.own_nats(run) as nats:
        async with running_stack(database, nats.url, model_home()) as stack:
            sides = [await digested(stack), await raw(stack)]
            await wait_until_enriched(stack, 300)
            share = sides[0].tokens / sides[1].tokens
            print(f"digested {sides[0].tokens} tokens of {sides[1].tokens}: {share:.1%}")
            found = {
                budget: [await ask(stack, side, budget) for side in sides] for budget in BUDGETS
            }
    for budget, (ours, theirs) in found.items():
        rows = [_row("digested, all", ours), _row("raw turns, all", theirs)]
        by_type: dict[str, Any] = defaultdict(lambda: ([], []))
        for one, other in zip(ours, theirs, strict=True):
            by_type[one[3]][0].append(one)
            by_type[one[3]][1].append(other)
        for type_, (one, other) in sorted(by_type.items()):
            rows += [_row(type_, one), _row("  raw", other)]
        show(f"DevMemBench within {budget} tokens", ["", "any", "all", "words"], rows)
    loses = [b for b, (a, r) in found.items() for at in (0, 1) if _mean(a, at) < _mean(r, at)]
    print("digested does not lose to raw" if not loses else f"digested loses within {loses} tokens")
    return share <= MOST_SHARE and not loses


def _mean(found: Sequence[Found], place: int) -> float:
    return sum(float(one[place]) for one in found) / len(found)


def main() -> int:
    """0; 1 where the digest is too large or loses; 2 where the set is not there."""
    if not FOLDER.exists():
        print(f"digested is left out: {FOLDER} is not there")
        return 2
    with open_quiet_run() as run:
        return 0 if asyncio.run(measure(run)) else 1


if __name__ == "__main__":
    parser(__doc__).parse_args()
    sys.exit(main())
