"""`reverie sessions`, `task` and `skill`: who worked, what is to do, how it is done."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from reverie.cli.asking import Desk, desk, part
from reverie.cli.common import CODES, Home, Json, Sets
from reverie.cli.options import Agent, Id, Limit, Project, Scope
from reverie.cli.shown import Document, ago, clipped, line_of, short, short_of, table, tell, warn
from reverie.domain.errors import Invalid

task = typer.Typer(
    name="task",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Tasks: list, claim, give back, finish.",
    epilog=CODES,
)
skill = typer.Typer(
    name="skill",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Procedures: list them, and fill one in to follow it.",
    epilog=CODES,
)

OneAgent = Annotated[str | None, typer.Option("--agent", help="Only of this agent.")]
Turns = Annotated[str | None, typer.Argument(help="A session's id: its turns. None: the latest.")]
States = Annotated[list[str] | None, typer.Option("--state", help="todo, doing, blocked or done.")]
Claimable = Annotated[bool, typer.Option("--claimable", help="Only what may be begun now.")]
Seconds = Annotated[int, typer.Option("--seconds", min=1, max=86_400, help="For how long.")]
Values = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="What fills the braces.")
]


class State(StrEnum):
    """Where a task stands."""

    TODO = "todo"
    DOING = "doing"
    BLOCKED = "blocked"
    DONE = "done"


def sessions(
    id: Turns = None,
    agent: OneAgent = None,
    project: Project = None,
    limit: Limit = 20,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Sessions, newest first; of one session what was said.

    Example: [bold]reverie sessions --project shop[/]
    """
    at = desk(home, sets, project)
    if id is not None:
        found = at.pages(f"/v1/sessions/{at.session(id)}/turns", {}, limit)
        tell(found, json, table(found, _TURNS))
        return
    found = at.pages("/v1/sessions", {"agent": agent, "project": at.project}, limit)
    tell(found, json, table(found, _SESSIONS))


_TURNS: dict[str, Any] = {
    "turn": "ord",
    "when": ago("at"),
    "role": "role",
    "content": clipped("content", 300),
}
_SESSIONS: dict[str, Any] = {
    "id": short_of("id"),
    "agent": "agent",
    "project": "project",
    "branch": "branch",
    "turns": "turns",
    "started": ago("started_at"),
    "ended": ago("ended_at"),
    "summary": clipped("summary", 120),
}


@task.command("list")
def tasks(
    state: States = None,
    claimable: Claimable = False,
    scope: Scope = None,
    project: Project = None,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Tasks, newest first.

    Example: [bold]reverie task list --state todo[/]
    """
    at = desk(home, sets, project)
    query = {"state": state, "claimable": claimable or None, "scope": scope or _scope(at)}
    found = at.pages("/v1/tasks", query, limit)
    tell(found, json, table(found, _TASKS))


def _scope(at: Desk) -> str | None:
    return f"project/{at.project}" if at.project else None


_TASKS: dict[str, Any] = {
    "id": short_of("id"),
    "state": lambda one: one["task"]["state"],
    "who": lambda one: one["task"]["claimed_by"],
    "waits for": lambda one: ", ".join(map(short, one["task"]["waits_for"])),
    "when": ago("created_at"),
    "task": clipped("content", 200),
}


@task.command("add")
def add(
    content: Annotated[str, typer.Argument(help="What is to be done.")],
    scope: Scope = None,
    project: Project = None,
    after: Annotated[
        list[str] | None, typer.Option("--after", help="A task that comes first.")
    ] = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Note what is to be done.

    Example: [bold]reverie task add "Mend the cart" --after 90bb12ef[/]
    """
    at = desk(home, sets, project)
    edges = [{"to": at.memory(one), "type": "depends_on"} for one in after or ()]
    body = {"content": content, "kind": "task", "edges": edges}
    place = scope or _scope(at)
    done = at.ask("POST", "/v1/remember", body=body | ({"scope": place} if place else {}))
    tell(done, json, f"{done['status']} {short(done['id'])}")


@task.command("set")
def move(
    id: Id,
    state: Annotated[State, typer.Argument(help="Where it stands now.")],
    agent: Agent = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Say where a task stands.

    Example: [bold]reverie task set 3fa9c1d2 done[/]
    """
    body = {"state": state.value, "agent": agent}
    _moved(desk(home, sets).ask("PATCH", f"/v1/tasks/{part(id)}", body=body), json)


@task.command("claim")
def claim(
    id: Id,
    seconds: Seconds = 900,
    agent: Agent = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Take a task: nobody else may have it for a time.

    Example: [bold]reverie task claim 3fa9c1d2 --agent me[/]
    """
    body = {"seconds": seconds, "agent": agent}
    _moved(desk(home, sets).ask("POST", f"/v1/tasks/{part(id)}/claim", body=body), json)


@task.command("release")
def release(
    id: Id, agent: Agent = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Give a task back.

    Example: [bold]reverie task release 3fa9c1d2[/]
    """
    body = {"agent": agent}
    _moved(desk(home, sets).ask("POST", f"/v1/tasks/{part(id)}/release", body=body), json)


def _moved(done: Document, json: bool) -> None:
    who = f", {done['task']['claimed_by']} has it" if done["task"]["claimed_by"] else ""
    tell(done, json, f"{short(done['id'])} is {done['task']['state']}{who}")


@skill.command("list")
def skills(
    scope: Scope = None,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Skills, newest first.

    Example: [bold]reverie skill list[/]
    """
    found = desk(home, sets).pages("/v1/skills", {"scope": scope}, limit)
    columns: dict[str, Any] = {
        "id": short_of("id"),
        "scope": "scope",
        "when": ago("created_at"),
        "steps": "steps",
        "fills": lambda one: ", ".join(one["places"]),
        "skill": lambda one: line_of(one["title"], 160),
    }
    tell(found, json, table(found, columns))


@skill.command("replay")
def replay(
    id: Id,
    values: Values = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """The steps of a skill as text, its places in braces filled.

    Example: [bold]reverie skill replay 3fa9c1d2 branch=main[/]
    """
    pairs = [one.partition("=") for one in values or ()]
    for name, equals, _ in pairs:
        if not equals:
            raise Invalid("value", f"expected NAME=VALUE, as branch=main, not {name!r}")
    query = [(name, value) for name, _, value in pairs]
    found = desk(home, sets).ask("GET", f"/v1/skills/{part(id)}/replay", query)
    warn([f"nothing fills {{{name}}}" for name in found["missing"]])
    tell(found, json, found["text"])
