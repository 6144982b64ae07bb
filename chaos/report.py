"""Writes the Markdown report of a run and puts it into its page of docs."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from chaos.history import Outcome
from chaos.result import TENANTS, ChaosResult

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


def report(result: ChaosResult) -> str:
    """What was done, what struck, how long endpoints were unavailable, and what is inconsistent."""
    failures = result.failures()
    failed = sum(result.refused.values(), Counter[str]())
    gaps = ", ".join(f"{name} {most:.1f} s" for name, most in result.longest_gaps.items())
    verdict = "Nothing lost, doubled, invented or leaked; every endpoint back in time."
    lines = [
        _summary(result),
        "",
        *_operations(result),
        "",
        *table(
            ("fault", "all endpoints back after, at most"),
            [(name, f"{most:.1f} s") for name, most in result.recoveries().items()],
        ),
        "",
        f"Longest time without an answer: {gaps}.",
        f"In place of an answer, the endpoints gave: {_counts(failed)}.",
        f"Answers to the clients: {_counts(result.log.answers)}.",
        *(
            [f"Could not be done here: {', '.join(result.unavailable_faults)}."]
            if result.unavailable_faults
            else []
        ),
        "",
        *([f"- {failure}" for failure in failures[:50]] or [verdict]),
    ]
    return "\n".join(lines)


def _summary(result: ChaosResult) -> str:
    log, plan = result.log, result.plan
    where = "three NATS servers, Postgres with a standby" if plan.several else "one of each server"
    return (
        f"Acknowledged: {log.acknowledged:,} operations in {result.seconds:.0f} s "
        f"by {plan.clients * len(TENANTS)} clients of {len(TENANTS)} tenants. "
        f"Faults: {result.fault_counts.total()} in {len(result.strikes)} strikes, on {where}. "
        f"The queues were empty {result.settle_seconds:.0f} s after the last call. "
        f"{machine()}; `{command(result)}`."
    )


def machine() -> str:
    """What it ran on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = platform.python_version()
    return f"{platform.system()} {platform.machine()}, {cores} cores, Python {python}"


def command(result: ChaosResult) -> str:
    """What repeats it."""
    plan = result.plan
    several = " --several" if plan.several else ""
    size = f"--operations {plan.operations} --faults {plan.faults} --clients {plan.clients}"
    strikes = "".join(f" --strike {one!r}" for one in plan.strikes)
    return f"python -m chaos.run --seed {plan.seed} {size}{several}{strikes}"


def _operations(result: ChaosResult) -> list[str]:
    """How many operations of each kind had which outcome."""
    by_outcome = {outcome: Counter[str]() for outcome in Outcome}
    for call in result.log.calls:
        by_outcome[call.outcome][call.action] += 1
    by_outcome[Outcome.DONE]["read"] = len(result.log.reads)
    return [
        f"Acknowledged: {_counts(by_outcome[Outcome.DONE])}.",
        f"Refused: {_counts(by_outcome[Outcome.REFUSED])}.",
        f"Unknown: {_counts(by_outcome[Outcome.UNKNOWN])}.",
    ]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items())) or "none"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table in Markdown."""
    lines: list[Sequence[object]] = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def put(name: str, text: str, page: Path = PAGE) -> None:
    """Puts the text between the marks of that name in the page, in place of what was there."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    told, times = between.subn(lambda _: f"{begin}\n\n{text.strip()}\n\n{end}", page.read_text())
    if times != 1:
        raise ValueError(f"{page} must hold {begin} and {end} once, and does {times} times")
    page.write_text(told)
