"""`reverie sessions`, `task` and `skill`: lists sessions, manages tasks, replays skills."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from reverie.cli.app.common import (
    EXIT_CODES_HELP,
    Agent,
    Home,
    Id,
    Json,
    Limit,
    Project,
    Scope,
    Sets,
)
from reverie.cli.app.gateway_client import GatewayClient, create_client, quote_segment
from reverie.cli.app.output import (
    JsonObject,
    age_cell,
    build_table,
    one_line,
    print_result,
    print_warnings,
    short_id,
    short_id_cell,
    text_cell,
)
from reverie.domain.core.errors import InvalidInput

task = typer.Typer(
    name="task",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Tasks: list, claim, give back, finish.",
    epilog=EXIT_CODES_HELP,
)
skill = typer.Typer(
    name="skill",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Procedures: list them, and fill one in to follow it.",
    epilog=EXIT_CODES_HELP,
)

AgentFilter = Annotated[str | None, typer.Option("--agent", help="Only of this agent.")]
SessionId = Annotated[
    str | None, typer.Argument(help="A session's id: its turns. None: the latest.")
]
States = Annotated[list[str] | None, typer.Option("--state", help="todo, doing, blocked or done.")]
Claimable = Annotated[bool, typer.Option("--claimable", help="Only what may be begun now.")]
Seconds = Annotated[int, typer.Option("--seconds", min=1, max=86_400, help="For how long.")]
Values = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="What fills the braces.")
]


class TaskStateOption(StrEnum):
    """Where a task stands."""

    TODO = "todo"
    DOING = "doing"
    BLOCKED = "blocked"
    DONE = "done"


def list_sessions(
    id: SessionId = None,
    agent: AgentFilter = None,
    project: Project = None,
    limit: Limit = 20,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Sessions, newest first; of one session what was said.

    Example: [bold]reverie sessions --project shop[/]
    """
    client = create_client(home, sets, project)
    if id is not None:
        items = client.list_items(f"/v1/sessions/{client.resolve_session_id(id)}/turns", {}, limit)
        print_result(items, json, build_table(items, _TURN_COLUMNS))
        return
    items = client.list_items("/v1/sessions", {"agent": agent, "project": client.project}, limit)
    print_result(items, json, build_table(items, _SESSION_COLUMNS))


_TURN_COLUMNS: dict[str, Any] = {
    "turn": "ord",
    "when": age_cell("at"),
    "role": "role",
    "content": text_cell("content", 300),
}
_SESSION_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "agent": "agent",
    "project": "project",
    "branch": "branch",
    "turns": "turns",
    "started": age_cell("started_at"),
    "ended": age_cell("ended_at"),
    "summary": text_cell("summary", 120),
}


@task.command("list")
def list_tasks(
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
    client = create_client(home, sets, project)
    query = {
        "state": state,
        "claimable": claimable or None,
        "scope": scope or _project_scope(client),
    }
    items = client.list_items("/v1/tasks", query, limit)
    print_result(items, json, build_table(items, _TASK_COLUMNS))


def _project_scope(client: GatewayClient) -> str | None:
    return f"project/{client.project}" if client.project else None


_TASK_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "state": lambda one: one["task"]["state"],
    "who": lambda one: one["task"]["claimed_by"],
    "waits for": lambda one: ", ".join(map(short_id, one["task"]["waits_for"])),
    "when": age_cell("created_at"),
    "task": text_cell("content", 200),
}


@task.command("add")
def add_task(
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
    client = create_client(home, sets, project)
    edges = [
        {"to": client.resolve_memory_id(dependency), "type": "depends_on"}
        for dependency in after or ()
    ]
    body = {"content": content, "kind": "task", "edges": edges}
    target_scope = scope or _project_scope(client)
    response = client.request(
        "POST", "/v1/remember", body=body | ({"scope": target_scope} if target_scope else {})
    )
    print_result(response, json, f"{response['status']} {short_id(response['id'])}")


@task.command("set")
def set_task_state(
    id: Id,
    state: Annotated[TaskStateOption, typer.Argument(help="Where it stands now.")],
    agent: Agent = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Say where a task stands.

    Example: [bold]reverie task set 3fa9c1d2 done[/]
    """
    body = {"state": state.value, "agent": agent}
    _print_task(
        create_client(home, sets).request("PATCH", f"/v1/tasks/{quote_segment(id)}", body=body),
        json,
    )


@task.command("claim")
def claim_task(
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
    _print_task(
        create_client(home, sets).request(
            "POST", f"/v1/tasks/{quote_segment(id)}/claim", body=body
        ),
        json,
    )


@task.command("release")
def release_task(
    id: Id, agent: Agent = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Give a task back.

    Example: [bold]reverie task release 3fa9c1d2[/]
    """
    body = {"agent": agent}
    _print_task(
        create_client(home, sets).request(
            "POST", f"/v1/tasks/{quote_segment(id)}/release", body=body
        ),
        json,
    )


def _print_task(document: JsonObject, json: bool) -> None:
    claimant = (
        f", {document['task']['claimed_by']} has it" if document["task"]["claimed_by"] else ""
    )
    print_result(
        document, json, f"{short_id(document['id'])} is {document['task']['state']}{claimant}"
    )


@skill.command("list")
def list_skills(
    scope: Scope = None,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Skills, newest first.

    Example: [bold]reverie skill list[/]
    """
    items = create_client(home, sets).list_items("/v1/skills", {"scope": scope}, limit)
    columns: dict[str, Any] = {
        "id": short_id_cell("id"),
        "scope": "scope",
        "when": age_cell("created_at"),
        "steps": "steps",
        "fills": lambda item: ", ".join(item["places"]),
        "skill": lambda item: one_line(item["title"], 160),
    }
    print_result(items, json, build_table(items, columns))


@skill.command("replay")
def replay_skill(
    id: Id,
    values: Values = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """The steps of a skill as text, its places in braces filled.

    Example: [bold]reverie skill replay 3fa9c1d2 branch=main[/]
    """
    pairs = [argument.partition("=") for argument in values or ()]
    for name, equals, _ in pairs:
        if not equals:
            raise InvalidInput("value", f"expected NAME=VALUE, as branch=main, not {name!r}")
    query = [(name, value) for name, _, value in pairs]
    response = create_client(home, sets).request(
        "GET", f"/v1/skills/{quote_segment(id)}/replay", query
    )
    print_warnings([f"nothing fills {{{name}}}" for name in response["missing"]])
    print_result(response, json, response["text"])
