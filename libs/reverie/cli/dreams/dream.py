"""`reverie dream`: runs a dream, lists what is queued, and shows past dreams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import (
    EXIT_CODES_HELP,
    FAILED,
    Home,
    Json,
    Sets,
    err,
    out,
    print_json,
    resolve_settings,
)
from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.output import (
    CellSource,
    age_cell,
    build_table,
    one_line,
    print_result,
    short_id,
    short_id_cell,
)
from reverie.cli.dreams.maintenance import list_summaries, run_maintenance

if TYPE_CHECKING:
    from reverie.cli.dreams.follow import DreamOutcome

app = typer.Typer(
    name="dream",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Digest conversations now, and see what dreams did.",
    epilog=EXIT_CODES_HELP,
)

app.command("summaries")(list_summaries)
app.command("tend")(run_maintenance)

Scope = Annotated[str | None, typer.Option("--scope", help="As project/shop; default: the key's.")]
ScopeFilter = Annotated[str | None, typer.Option("--scope", help="Only this scope.")]
Session = Annotated[str | None, typer.Option("--session", help="The scope of this session.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow the dream to its end.")]
Timeout = Annotated[
    float, typer.Option("--timeout", min=1, help="Seconds to follow it; the dream goes on.")
]
Id = Annotated[str | None, typer.Argument(help="A dream's id; none: the latest ones.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many to list.")]

JsonObject = Mapping[str, Any]
PAGE_SIZE = "200"
MAX_ITEMS = 10_000


@app.command("run")
def run(
    scope: Scope = None,
    session: Session = None,
    wait: Wait = True,
    timeout: Timeout = 600.0,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Digest what waits in a scope now, open topics too, and show how far it is.

    Example: [bold]reverie dream run --scope project/shop[/]

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
        raise typer.Exit(FAILED)


def _print_outcome(outcome: DreamOutcome) -> None:
    for dream_run in outcome.runs:
        out().print(f"{outcome.scope}: {_format_run(dream_run)}", markup=False)
    if outcome.status == "parked":
        err().print(f"{outcome.scope} was given up: {outcome.error}", markup=False)
    elif outcome.status != "done":
        out().print(f"{outcome.scope}: {outcome.status}", markup=False)


def _format_run(dream_run: JsonObject) -> str:
    return (
        f"{dream_run['status']}, {dream_run['turns']} turns: "
        f"{_format_outcomes(dream_run)} ({short_id(dream_run['id'])})"
    )


@app.command("status")
def status(
    scope: ScopeFilter = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """What waits to be digested in each scope, and what is asked for.

    Example: [bold]reverie dream status[/]
    """
    query = {"scope": scope} if scope else {}
    items = create_client(home, sets).list_items("/v1/dream", query, MAX_ITEMS)
    print_result(
        items,
        json,
        build_table(items, WAITING_COLUMNS) if items else "Nothing waits: all turns are digested.",
    )


@app.command("history")
def history(
    id: Id = None,
    scope: ScopeFilter = None,
    limit: Limit = 20,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """What was dreamt, newest first; of one dream what went in, what came out, and why.

    Example: [bold]reverie dream history --scope project/shop[/]
    """
    client = create_client(home, sets)
    if id is None:
        items = client.list_items("/v1/dreams", {"scope": scope} if scope else {}, limit)
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


def _format_details(dream: JsonObject) -> list[str]:
    """What went in, how long it took and what models were asked."""
    lines = [
        f"{dream['scope']}: {_format_run(dream)}",
        f"why: {dream['reason']}" if dream["reason"] else "",
    ]
    lines.append(f"error: {dream['error']}" if dream["error"] else "")
    lines += [
        f"in: session {short_id(source['session'])}, {source['turns']} turns"
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
    """What came of a dream, by outcome."""
    return (
        ", ".join(f"{n} {name}" for name, n in sorted(dream_run["outcomes"].items()))
        or "nothing new"
    )


def _format_state(item: JsonObject) -> str:
    return f"running, {item['done']} of {item['waiting']}" if item["run"] else str(item["state"])


def _reason_or_error(item: JsonObject) -> str:
    return str(item["error"] or item["reason"] or "")


def _format_decision(decision: JsonObject) -> str:
    """The memory, and why it was decided so."""
    return one_line(": ".join(filter(None, (decision["why"], decision["content"]))), 160)


WAITING_COLUMNS: dict[str, CellSource | str] = {
    "scope": "scope",
    "state": _format_state,
    "turns": "turns",
    "segments": "segments",
    "chars": "chars",
    "sessions": "sessions",
    "why": _reason_or_error,
}
RUN_COLUMNS: dict[str, CellSource | str] = {
    "id": short_id_cell("id"),
    "started": age_cell("started_at"),
    "scope": "scope",
    "status": "status",
    "turns": "turns",
    "made": _format_outcomes,
}
DECISION_COLUMNS: dict[str, CellSource | str] = {
    "outcome": "outcome",
    "kind": "kind",
    "memory": short_id_cell("memory"),
    "why": _format_decision,
}
