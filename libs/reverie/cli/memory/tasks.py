"""`reverie task` and `reverie skill`: manages tasks, and replays skills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import create_client, quote_segment
from reverie.cli.app.options import (
    agent_option,
    common_options,
    limit_option,
    memory_id_argument,
    project_option,
    scope_option,
)
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

task = click.Group(
    "task", help="Manage tasks: list, add, update, claim, release.", epilog=EXIT_CODES_HELP
)
skill = click.Group(
    "skill",
    help="List skills (procedures), and fill in their placeholders.",
    epilog=EXIT_CODES_HELP,
)


@task.command("list")
@click.option("--state", multiple=True, help="Only this state; may be repeated.")
@click.option("--claimable", is_flag=True, help="Only tasks that can be claimed now.")
@scope_option
@project_option
@limit_option(50)
@common_options
def list_tasks(
    state: tuple[str, ...],
    claimable: bool,
    scope: str | None,
    project: str | None,
    limit: int,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """List tasks, newest first.

    Example: reverie task list --state todo
    """
    client = create_client(home, sets, project)
    query = {
        "state": state,
        "claimable": claimable or None,
        "scope": scope or client.project_scope,
    }
    items = client.list_items("/v1/tasks", query, limit)
    print_result(items, json, build_table(items, _TASK_COLUMNS))


_TASK_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "state": lambda item: item["task"]["state"],
    "claimed by": lambda item: item["task"]["claimed_by"],
    "waits for": lambda item: ", ".join(map(short_id, item["task"]["waits_for"])),
    "age": age_cell("created_at"),
    "task": text_cell("content", 200),
}


@task.command("add")
@click.argument("content", help="The task.")
@scope_option
@project_option
@click.option("--after", multiple=True, help="A task that must be done before; may be repeated.")
@common_options
def add_task(
    content: str,
    scope: str | None,
    project: str | None,
    after: tuple[str, ...],
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Add a task.

    Example: reverie task add "Mend the cart" --after 90bb12ef
    """
    client = create_client(home, sets, project)
    edges = [
        {"to": client.resolve_memory_id(dependency), "type": "depends_on"} for dependency in after
    ]
    body = {"content": content, "kind": "task", "edges": edges}
    target_scope = scope or client.project_scope
    response = client.request(
        "POST", "/v1/remember", body=body | ({"scope": target_scope} if target_scope else {})
    )
    print_result(response, json, f"{response['status']} {short_id(response['id'])}")


@task.command("update")
@memory_id_argument
@click.argument(
    "state", type=click.Choice(["todo", "doing", "blocked", "done"]), help="The new state."
)
@agent_option
@common_options
def set_task_state(
    id: str, state: str, agent: str | None, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Change the state of a task.

    Example: reverie task update 3fa9c1d2 done
    """
    body = {"state": state, "agent": agent}
    _print_task(
        create_client(home, sets).request("PATCH", f"/v1/tasks/{quote_segment(id)}", body=body),
        json,
    )


@task.command("claim")
@memory_id_argument
@click.option(
    "--lease",
    "seconds",
    type=click.IntRange(min=1, max=86400),
    default=900,
    help="Seconds until the claim expires.",
)
@agent_option
@common_options
def claim_task(
    id: str, seconds: int, agent: str | None, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Claim a task for a limited time.

    Example: reverie task claim 3fa9c1d2 --agent me
    """
    body = {"seconds": seconds, "agent": agent}
    _print_task(
        create_client(home, sets).request(
            "POST", f"/v1/tasks/{quote_segment(id)}/claim", body=body
        ),
        json,
    )


@task.command("release")
@memory_id_argument
@agent_option
@common_options
def release_task(
    id: str, agent: str | None, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Release a claimed task.

    Example: reverie task release 3fa9c1d2
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
        f", claimed by {document['task']['claimed_by']}" if document["task"]["claimed_by"] else ""
    )
    print_result(
        document, json, f"{short_id(document['id'])} is {document['task']['state']}{claimant}"
    )


@skill.command("list")
@scope_option
@limit_option(50)
@common_options
def list_skills(
    scope: str | None, limit: int, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """List skills, newest first.

    Example: reverie skill list
    """
    items = create_client(home, sets).list_items("/v1/skills", {"scope": scope}, limit)
    columns: dict[str, Any] = {
        "id": short_id_cell("id"),
        "scope": "scope",
        "age": age_cell("created_at"),
        "steps": "steps",
        "placeholders": lambda item: ", ".join(item["places"]),
        "skill": lambda item: one_line(item["title"], 160),
    }
    print_result(items, json, build_table(items, columns))


@skill.command("replay")
@memory_id_argument
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...", help="Values of the placeholders.")
@common_options
def replay_skill(
    id: str, values: tuple[str, ...], home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Print the steps of a skill with its placeholders filled in.

    Example: reverie skill replay 3fa9c1d2 branch=main
    """
    pairs = [argument.partition("=") for argument in values]
    for name, equals, _ in pairs:
        if not equals:
            raise InvalidInput("value", f"expected NAME=VALUE, such as branch=main, not {name!r}")
    query = [(name, value) for name, _, value in pairs]
    response = create_client(home, sets).request(
        "GET", f"/v1/skills/{quote_segment(id)}/replay", query
    )
    print_warnings([f"the placeholder {{{name}}} has no value" for name in response["missing"]])
    print_result(response, json, response["text"])
