"""`reverie dream`: ask for a dream and follow it, see what waits, read what was dreamt and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.asking import desk
from reverie.cli.common import CODES, FAILED, Home, Json, Sets, err, out, print_json, settings_from
from reverie.cli.dream_tending import summaries, tend
from reverie.cli.shown import Cell, ago, line_of, short, short_of, table, tell

if TYPE_CHECKING:
    from reverie.cli.dream_following import Followed

app = typer.Typer(
    name="dream",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Digest conversations now, and see what dreams did.",
    epilog=CODES,
)

app.command("summaries")(summaries)
app.command("tend")(tend)

Scope = Annotated[str | None, typer.Option("--scope", help="As project/shop; default: the key's.")]
OneScope = Annotated[str | None, typer.Option("--scope", help="Only this scope.")]
Session = Annotated[str | None, typer.Option("--session", help="The scope of this session.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow the dream to its end.")]
Timeout = Annotated[
    float, typer.Option("--timeout", min=1, help="Seconds to follow it; the dream goes on.")
]
Id = Annotated[str | None, typer.Argument(help="A dream's id; none: the latest ones.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many to list.")]

Document = Mapping[str, Any]
PAGE = "200"
ALL = 10_000


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

    from reverie.cli.dream_following import follow

    settings = settings_from(home, sets)
    done = asyncio.run(follow(settings, scope, session, timeout if wait else 0.0))
    if json:
        print_json({"scope": done.scope, "status": done.status, "runs": done.runs})
    else:
        _tell(done)
    if wait and done.status != "done":
        raise typer.Exit(FAILED)


def _tell(done: Followed) -> None:
    for one in done.runs:
        out().print(f"{done.scope}: {_summed(one)}", markup=False)
    if done.status == "parked":
        err().print(f"{done.scope} was given up: {done.error}", markup=False)
    elif done.status != "done":
        out().print(f"{done.scope}: {done.status}", markup=False)


def _summed(one: Document) -> str:
    return f"{one['status']}, {one['turns']} turns: {_made(one)} ({short(one['id'])})"


@app.command("status")
def status(
    scope: OneScope = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """What waits to be digested in each scope, and what is asked for.

    Example: [bold]reverie dream status[/]
    """
    query = {"scope": scope} if scope else {}
    found = desk(home, sets).pages("/v1/dream", query, ALL)
    tell(found, json, table(found, WAITING) if found else "Nothing waits: all turns are digested.")


@app.command("history")
def history(
    id: Id = None,
    scope: OneScope = None,
    limit: Limit = 20,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """What was dreamt, newest first; of one dream what went in, what came out, and why.

    Example: [bold]reverie dream history --scope project/shop[/]
    """
    at = desk(home, sets)
    if id is None:
        found = at.pages("/v1/dreams", {"scope": scope} if scope else {}, limit)
        tell(found, json, table(found, RUNS) if found else "No dreams yet.")
        return
    path = f"/v1/dreams/{at.dream(id)}"
    one = page = at.ask("GET", path, {"limit": PAGE})
    while page["next"]:
        page = at.ask("GET", path, {"limit": PAGE, "cursor": page["next"]})
        one["decisions"] += page["decisions"]
    whole = {name: value for name, value in one.items() if name != "next"}
    tell(whole, json, *_lines(one), table(one["decisions"], DECISIONS))


def _lines(one: Document) -> list[str]:
    """What went in, how long it took and what models were asked."""
    lines = [f"{one['scope']}: {_summed(one)}", f"why: {one['reason']}" if one["reason"] else ""]
    lines.append(f"error: {one['error']}" if one["error"] else "")
    lines += [
        f"in: session {short(part['session'])}, {part['turns']} turns"
        f" ({part['first']} to {part['last']}), {part['chars']} characters"
        for part in one["input"]
    ]
    took = ", ".join(f"{name} {spent:.2f} s" for name, spent in sorted(one["seconds"].items()))
    lines.append(f"time: {took}" if took else "")
    if one["llm_calls"]:
        prompts = ", ".join(one["prompts"]) or "no prompt"
        lines.append(f"models: {one['llm_calls']} calls, {one['llm_tokens']} tokens ({prompts})")
    lines += [f"degraded: {why}" for why in one["degraded"]]
    return [line for line in lines if line]


def _made(one: Document) -> str:
    """What came of a dream, by outcome."""
    return ", ".join(f"{n} {name}" for name, n in sorted(one["outcomes"].items())) or "nothing new"


def _state(one: Document) -> str:
    return f"running, {one['done']} of {one['waiting']}" if one["run"] else str(one["state"])


def _why_or_error(one: Document) -> str:
    return str(one["error"] or one["reason"] or "")


def _told(one: Document) -> str:
    """The memory, and why it was decided so."""
    return line_of(": ".join(filter(None, (one["why"], one["content"]))), 160)


WAITING: dict[str, Cell | str] = {
    "scope": "scope",
    "state": _state,
    "turns": "turns",
    "segments": "segments",
    "chars": "chars",
    "sessions": "sessions",
    "why": _why_or_error,
}
RUNS: dict[str, Cell | str] = {
    "id": short_of("id"),
    "started": ago("started_at"),
    "scope": "scope",
    "status": "status",
    "turns": "turns",
    "made": _made,
}
DECISIONS: dict[str, Cell | str] = {
    "outcome": "outcome",
    "kind": "kind",
    "memory": short_of("memory"),
    "why": _told,
}
