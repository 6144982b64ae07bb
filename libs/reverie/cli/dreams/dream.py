"""`reverie dream`: runs a dream, lists what is queued, and shows past dreams."""

from __future__ import annotations

from collections.abc import Iterator

import click

from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    limit_option,
    scope_option,
)
from reverie.cli.app.output import (
    EMPTY_MESSAGE,
    Columns,
    JsonObject,
    age_cell,
    build_table,
    err,
    format_age,
    one_line,
    plural,
    short_id,
    short_id_cell,
)
from reverie.domain.core.errors import InvalidInput

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
    options: CommonOptions, scope: str | None, session: str | None, wait: bool, timeout: float
) -> None:
    """Run a dream on a scope now, and show its progress.

    Example: reverie dream run --scope project/shop

    Exit codes: 0 ok, 1 the dream failed or is not over yet, 2 usage, 3 not running.
    """
    import asyncio

    from reverie.cli.dreams.follow import follow_dream

    outcome = asyncio.run(follow_dream(options.settings(), scope, session, timeout if wait else 0))
    lines = [f"{outcome.scope}: {_format_run(dream_run)}" for dream_run in outcome.runs]
    if outcome.earlier:
        ago = format_age(outcome.earlier["started_at"])
        lines.append(f"an earlier dream, {ago}, took the turns: {_format_run(outcome.earlier)}")
    if outcome.status not in {"done", "parked"}:
        lines.append(f"{outcome.scope}: {outcome.status}")
    result: JsonObject = {
        "scope": outcome.scope,
        "status": outcome.status,
        "runs": outcome.runs,
        **({"earlier": outcome.earlier} if outcome.earlier else {}),
    }
    options.print_result(result, *lines)
    if outcome.status == "parked" and not options.json:
        err().print(f"{outcome.scope} failed: {outcome.error}", markup=False)
    if wait and outcome.status != "done":
        raise click.exceptions.Exit(FAILED)


def _format_run(dream_run: JsonObject) -> str:
    return (
        f"{dream_run['status']}, {plural(dream_run['turns'], 'turn')}: "
        f"{_format_outcomes(dream_run)} ({short_id(dream_run['id'])})"
    )


@app.command("status")
@click.option("--scope", help="Only this scope.")
@common_options
def status(options: CommonOptions, scope: str | None) -> None:
    """Show the turns of each scope that wait for a dream, and requested dreams.

    Example: reverie dream status
    """
    items = options.gateway().list_items("/v1/dream", {"scope": scope}, 10_000)
    options.print_table(items, WAITING_COLUMNS, empty="All turns are digested.")


@app.command("history")
@click.argument("id", required=False, help="A dream's id; without it, list the latest dreams.")
@click.option("--scope", help="Only this scope.")
@limit_option(20, 200)
@common_options
def history(options: CommonOptions, id: str | None, scope: str | None, limit: int) -> None:
    """List past dreams, newest first, or show input and decisions of one dream.

    Example: reverie dream history --scope project/shop
    """
    client = options.gateway()
    if id is None:
        items = client.list_items("/v1/dreams", {"scope": scope}, limit)
        options.print_table(items, RUN_COLUMNS, empty="No dreams yet.")
        return
    path = f"/v1/dreams/{quote_segment(id)}"
    dream = page = client.request("GET", path, {"limit": PAGE_SIZE})
    while page["next"]:
        page = client.request("GET", path, {"limit": PAGE_SIZE, "cursor": page["next"]})
        dream["decisions"] += page["decisions"]
    document = {name: value for name, value in dream.items() if name != "next"}
    options.print_result(
        document, *_format_details(dream), build_table(dream["decisions"], DECISION_COLUMNS)
    )


@app.command("summaries")
@scope_option
@click.option("--history", is_flag=True, help="Show the versions of the summary, newest first.")
@limit_option(20)
@common_options
def list_summaries(options: CommonOptions, scope: str | None, history: bool, limit: int) -> None:
    """Show the summary of each scope, which dreams keep up to date.

    A sentence of a language model is followed by the ids of the memories that it sums up.

    Example: reverie dream summaries --scope project/shop --history
    """
    if history and scope is None:
        raise InvalidInput("--history", "needs a --scope")
    path = "/v1/dream/summaries/history" if history else "/v1/dream/summaries"
    items = options.gateway().list_items(path, {"scope": scope}, limit)
    options.print_result(items, "\n\n".join(map(_format_summary, items)) or EMPTY_MESSAGE)


def _format_summary(summary: JsonObject) -> str:
    head = f"{summary['scope']}, version {summary['version']}, {format_age(summary['created_at'])}"
    content = summary["content"].strip()
    cited = {
        f"- {sentence['text']}": ", ".join(map(short_id, sentence["memories"]))
        for sentence in summary["overview"]
    }
    lines = content.split("\n") if content else ["(no text)"]
    shown = (f"{line} [{cited[line]}]" if line in cited else line for line in lines)
    return "\n".join((head, *shown))


def _format_details(dream: JsonObject) -> Iterator[str]:
    """The input, durations and model calls of a dream."""
    yield f"{dream['scope']}: {_format_run(dream)}"
    if dream["reason"]:
        yield f"reason: {dream['reason']}"
    if dream["error"]:
        yield f"error: {dream['error']}"
    for source in dream["input"]:
        span = f"{source['first_ordinal']} to {source['last_ordinal']}"
        turns = f"{plural(source['turns'], 'turn')} ({span})"
        session = short_id(source["session"])
        yield f"input: session {session}, {turns}, {plural(source['chars'], 'character')}"
    if dream["seconds"]:
        durations = (f"{name} {spent:.2f} s" for name, spent in sorted(dream["seconds"].items()))
        yield f"time: {', '.join(durations)}"
    if dream["llm_calls"]:
        prompts = ", ".join(dream["prompts"]) or "no prompt"
        usage = f"{plural(dream['llm_calls'], 'call')}, {plural(dream['llm_tokens'], 'token')}"
        yield f"models: {usage} ({prompts})"
    for reason in dream["degraded"]:
        yield f"degraded: {reason}"


def _format_outcomes(dream_run: JsonObject) -> str:
    """The number of decisions by outcome."""
    counts = (f"{n} {name}" for name, n in sorted(dream_run["outcomes"].items()))
    return ", ".join(counts) or "nothing new"


WAITING_COLUMNS: Columns = {
    "scope": "scope",
    "state": lambda item: (
        f"running, {item['digested']} of {item['waiting']}" if item["run"] else item["state"]
    ),
    "turns": "turns",
    "segments": "segments",
    "chars": "chars",
    "sessions": "sessions",
    "reason": lambda item: item["error"] or item["reason"],
}
RUN_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "started": age_cell("started_at"),
    "scope": "scope",
    "status": "status",
    "turns": "turns",
    "results": _format_outcomes,
}
DECISION_COLUMNS: Columns = {
    "outcome": "outcome",
    "kind": "kind",
    "memory": short_id_cell("memory"),
    "reason": lambda decision: one_line(
        ": ".join(filter(None, (decision["reason"], decision["content"]))), 160
    ),
}
