"""`reverie dream`: ask for a dream and follow it, see what waits, read what was dreamt and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.asking import desk
from reverie.cli.common import CODES, FAILED, Home, Json, Sets, err, out, print_json, settings_from
from reverie.cli.dream_tending import summaries, tend

if TYPE_CHECKING:
    from rich.table import Table

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
    made = ", ".join(f"{n} {name}" for name, n in sorted(one["outcomes"].items()))
    return f"{one['status']}, {one['turns']} turns: {made or 'nothing new'} ({one['id']})"


@app.command("status")
def status(
    scope: OneScope = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """What waits to be digested in each scope, and what is asked for.

    Example: [bold]reverie dream status[/]
    """
    at, query = desk(home, sets), {"limit": PAGE}
    query |= {"scope": scope} if scope else {}
    page = at.ask("GET", "/v1/dream", query)
    found = list(page["items"])
    while page["next"]:
        page = at.ask("GET", "/v1/dream", {**query, "cursor": page["next"]})
        found += page["items"]
    print_json(found) if json else out().print(
        _waiting(found) if found else "Nothing waits: all turns are digested."
    )


def _waiting(found: Sequence[Document]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("scope", "state", "turns", "segments", "chars", "sessions", "why", box=None)
    for one in found:
        state = one["state"]
        if one["run"]:
            state = f"running, {one['done']} of {one['waiting']}"
        cells = (one[name] for name in ("turns", "segments", "chars", "sessions"))
        why = one["error"] or one["reason"] or ""
        table.add_row(one["scope"], state, *map(str, cells), escape(why))
    return table


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
        query = {"limit": str(limit)} | ({"scope": scope} if scope else {})
        found = at.ask("GET", "/v1/dreams", query)["items"]
        print_json(found) if json else out().print(_listed(found) if found else "No dreams yet.")
        return
    one = at.ask("GET", f"/v1/dreams/{id}", {"limit": PAGE})
    page = one
    while page["next"]:
        page = at.ask("GET", f"/v1/dreams/{id}", {"limit": PAGE, "cursor": page["next"]})
        one["decisions"] += page["decisions"]
    if json:
        print_json({name: value for name, value in one.items() if name != "next"})
    else:
        _show(one)


def _listed(found: Sequence[Document]) -> Table:
    from rich.table import Table

    table = Table("started", "scope", "status", "turns", "created", "reinforced", "id", box=None)
    for one in found:
        cells = (one[name] for name in ("scope", "status", "turns", "created", "reinforced", "id"))
        table.add_row(one["started_at"][:19].replace("T", " "), *map(str, cells))
    return table


def _show(one: Document) -> None:
    console = out()
    head = f"{one['scope']}: {_summed(one)}, asked for by {one['reason'] or 'nobody'}"
    lines = [head, f"error: {one['error']}" if one["error"] else ""]
    lines += [
        f"in: session {part['session']}, {part['turns']} turns ({part['first']} to {part['last']}),"
        f" {part['chars']} characters"
        for part in one["input"]
    ]
    took = ", ".join(f"{name} {spent:.2f} s" for name, spent in sorted(one["seconds"].items()))
    lines.append(f"time: {took}" if took else "")
    if one["llm_calls"]:
        prompts = ", ".join(one["prompts"]) or "no prompt"
        lines.append(f"models: {one['llm_calls']} calls, {one['llm_tokens']} tokens ({prompts})")
    lines += [f"degraded: {why}" for why in one["degraded"]]
    console.print("\n".join(filter(None, lines)), markup=False)
    console.print(_decided(one["decisions"]))


def _decided(found: Sequence[Document]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("outcome", "kind", "why", "memory", "content", box=None)
    for one in found:
        told = (one["content"] or "").split("\n")[0][:100]
        table.add_row(
            one["outcome"], one["kind"] or "", escape(one["why"]), one["memory"] or "", escape(told)
        )
    return table
