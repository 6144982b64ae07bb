"""`reverie dream`: runs a dream, lists what is queued, and shows past dreams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.options import common_options, limit_option, resolve_settings, scope_option
from reverie.cli.app.output import (
    EMPTY_MESSAGE,
    CellSource,
    JsonObject,
    age_cell,
    build_table,
    err,
    format_age,
    one_line,
    out,
    print_json,
    print_result,
    short_id,
    short_id_cell,
)
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.cli.dreams.follow import DreamOutcome

app = click.Group("dream", help="Run dreams, and show what they did.", epilog=EXIT_CODES_HELP)


PAGE_SIZE = 200


@app.command("run")
@click.option("--scope", help="A scope, such as project/shop; default: the scope of the key.")
@click.option("--session", help="Take the scope of this session.")
@click.option("--wait/--no-wait", default=True, help="Wait for the end of the dream.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=600.0,
    help="Seconds to wait; the dream continues after that.",
)
@common_options
def run(
    scope: str | None,
    session: str | None,
    wait: bool,
    timeout: float,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Run a dream on a scope now, and show its progress.

    Example: reverie dream run --scope project/shop

    Exit codes: 0 ok, 1 the dream failed or is not over yet, 2 usage, 3 not running.
    """
    import asyncio

    from reverie.cli.dreams.follow import follow_dream

    settings = resolve_settings(home, sets)
    outcome = asyncio.run(follow_dream(settings, scope, session, timeout if wait else 0.0))
    if json:
        print_json({"scope": outcome.scope, "status": outcome.status, "runs": outcome.runs})
    else:
        _print_outcome(outcome)
    if wait and outcome.status != "done":
        raise click.exceptions.Exit(FAILED)


def _print_outcome(outcome: DreamOutcome) -> None:
    for dream_run in outcome.runs:
        out().print(f"{outcome.scope}: {_format_run(dream_run)}", markup=False)
    if outcome.status == "parked":
        err().print(f"{outcome.scope} failed: {outcome.error}", markup=False)
    elif outcome.status != "done":
        out().print(f"{outcome.scope}: {outcome.status}", markup=False)


def _format_run(dream_run: JsonObject) -> str:
    return (
        f"{dream_run['status']}, {dream_run['turns']} turns: "
        f"{_format_outcomes(dream_run)} ({short_id(dream_run['id'])})"
    )


@app.command("status")
@click.option("--scope", help="Only this scope.")
@common_options
def status(scope: str | None, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Show the turns of each scope that wait for a dream, and requested dreams.

    Example: reverie dream status
    """
    items = create_client(home, sets).list_items("/v1/dream", {"scope": scope}, 10_000)
    print_result(
        items,
        json,
        build_table(items, WAITING_COLUMNS) if items else "All turns are digested.",
    )


@app.command("history")
@click.argument("id", required=False, help="A dream's id; without it, list the latest dreams.")
@click.option("--scope", help="Only this scope.")
@limit_option(20, 200)
@common_options
def history(
    id: str | None,
    scope: str | None,
    limit: int,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """List past dreams, newest first, or show input and decisions of one dream.

    Example: reverie dream history --scope project/shop
    """
    client = create_client(home, sets)
    if id is None:
        items = client.list_items("/v1/dreams", {"scope": scope}, limit)
        print_result(items, json, build_table(items, RUN_COLUMNS) if items else "No dreams yet.")
        return
    path = f"/v1/dreams/{client.resolve_dream_id(id)}"
    dream = page = client.request("GET", path, {"limit": PAGE_SIZE})
    while page["next"]:
        page = client.request("GET", path, {"limit": PAGE_SIZE, "cursor": page["next"]})
        dream["decisions"] += page["decisions"]
    document = {name: value for name, value in dream.items() if name != "next"}
    print_result(
        document, json, *_format_details(dream), build_table(dream["decisions"], DECISION_COLUMNS)
    )


@app.command("summaries")
@scope_option
@click.option("--history", is_flag=True, help="Show the versions of the summary, newest first.")
@limit_option(20)
@common_options
def list_summaries(
    scope: str | None,
    history: bool,
    limit: int,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Show the summary of each scope, which dreams keep up to date.

    Example: reverie dream summaries --scope project/shop --history
    """
    if history and scope is None:
        raise InvalidInput("--history", "needs a --scope")
    path = "/v1/dream/summaries/history" if history else "/v1/dream/summaries"
    items = create_client(home, sets).list_items(path, {"scope": scope}, limit)
    print_result(items, json, "\n\n".join(map(_format_summary, items)) or EMPTY_MESSAGE)


def _format_summary(summary: JsonObject) -> str:
    head = f"{summary['scope']}, version {summary['version']}, {format_age(summary['made_at'])}"
    return f"{head}\n{summary['content'].strip() or '(no text)'}"


def _format_details(dream: JsonObject) -> list[str]:
    """The input, durations and model calls of a dream."""
    lines = [
        f"{dream['scope']}: {_format_run(dream)}",
        f"reason: {dream['reason']}" if dream["reason"] else "",
    ]
    lines.append(f"error: {dream['error']}" if dream["error"] else "")
    lines += [
        f"input: session {short_id(source['session'])}, {source['turns']} turns"
        f" ({source['first']} to {source['last']}), {source['chars']} characters"
        for source in dream["input"]
    ]
    durations = ", ".join(
        f"{name} {spent:.2f} s" for name, spent in sorted(dream["seconds"].items())
    )
    lines.append(f"time: {durations}" if durations else "")
    if dream["llm_calls"]:
        prompts = ", ".join(dream["prompts"]) or "no prompt"
        lines.append(
            f"models: {dream['llm_calls']} calls, {dream['llm_tokens']} tokens ({prompts})"
        )
    lines += [f"degraded: {reason}" for reason in dream["degraded"]]
    return [line for line in lines if line]


def _format_outcomes(dream_run: JsonObject) -> str:
    """The number of decisions by outcome."""
    return (
        ", ".join(f"{n} {name}" for name, n in sorted(dream_run["outcomes"].items()))
        or "nothing new"
    )


def _format_decision(decision: JsonObject) -> str:
    """The memory, with the reason of the decision."""
    return one_line(": ".join(filter(None, (decision["why"], decision["content"]))), 160)


WAITING_COLUMNS: dict[str, CellSource | str] = {
    "scope": "scope",
    "state": lambda item: (
        f"running, {item['done']} of {item['waiting']}" if item["run"] else item["state"]
    ),
    "turns": "turns",
    "segments": "segments",
    "chars": "chars",
    "sessions": "sessions",
    "reason": lambda item: item["error"] or item["reason"],
}
RUN_COLUMNS: dict[str, CellSource | str] = {
    "id": short_id_cell("id"),
    "started": age_cell("started_at"),
    "scope": "scope",
    "status": "status",
    "turns": "turns",
    "results": _format_outcomes,
}
DECISION_COLUMNS: dict[str, CellSource | str] = {
    "outcome": "outcome",
    "kind": "kind",
    "memory": short_id_cell("memory"),
    "reason": _format_decision,
}
