"""`reverie task`, `reverie skill` and `reverie fact`: tasks, skills, and verified facts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import (
    CommonOptions,
    agent_option,
    common_options,
    drop_unset,
    limit_option,
    memory_id_argument,
    project_option,
    scope_option,
)
from reverie.cli.app.output import (
    Columns,
    age_cell,
    one_line,
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
    options: CommonOptions,
    state: tuple[str, ...],
    claimable: bool,
    scope: str | None,
    project: str | None,
    limit: int,
) -> None:
    """List tasks, newest first.

    Example: reverie task list --state todo
    """
    client = options.gateway(project)
    target = scope or client.project_scope
    query = {"state": state, "claimable": claimable or None, "scope": target}
    items = client.list_items("/v1/tasks", query, limit)
    options.print_table(items, _TASK_COLUMNS)


_TASK_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "state": lambda item: item["task"]["state"],
    "claimed by": lambda item: item["task"]["claimed_by"],
    "waits for": lambda item: ", ".join(map(short_id, item["task"]["depends_on"])),
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
    options: CommonOptions,
    content: str,
    scope: str | None,
    project: str | None,
    after: tuple[str, ...],
) -> None:
    """Add a task.

    Example: reverie task add "Mend the cart" --after 90bb12ef
    """
    client = options.gateway(project)
    edges = [{"to": client.resolve_memory_id(id), "type": "depends_on"} for id in after]
    body = {"content": content, "kind": "task", "edges": edges}
    body |= drop_unset({"scope": scope or client.project_scope})
    response = client.request("POST", "/v1/remember", body=body)
    options.print_result(response, f"{response['status']} {short_id(response['id'])}")


@task.command("update")
@memory_id_argument
@click.argument(
    "state", type=click.Choice(["todo", "doing", "blocked", "done"]), help="The new state."
)
@agent_option
@common_options
def set_task_state(options: CommonOptions, id: str, **body: Any) -> None:
    """Change the state of a task.

    Example: reverie task update 3fa9c1d2 done
    """
    _change_task(options, "PATCH", f"/v1/tasks/{quote_segment(id)}", body)


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
def claim_task(options: CommonOptions, id: str, **body: Any) -> None:
    """Claim a task for a limited time.

    Example: reverie task claim 3fa9c1d2 --agent me
    """
    _change_task(options, "POST", f"/v1/tasks/{quote_segment(id)}/claim", body)


@task.command("release")
@memory_id_argument
@agent_option
@common_options
def release_task(options: CommonOptions, id: str, **body: Any) -> None:
    """Release a claimed task.

    Example: reverie task release 3fa9c1d2
    """
    _change_task(options, "POST", f"/v1/tasks/{quote_segment(id)}/release", body)


def _change_task(options: CommonOptions, method: str, path: str, body: Mapping[str, Any]) -> None:
    response = options.gateway().request(method, path, body=body)
    task = response["task"]
    claimant = f", claimed by {task['claimed_by']}" if task["claimed_by"] else ""
    options.print_result(response, f"{short_id(response['id'])} is {task['state']}{claimant}")


@skill.command("list")
@scope_option
@limit_option(50)
@common_options
def list_skills(options: CommonOptions, scope: str | None, limit: int) -> None:
    """List skills, newest first.

    Example: reverie skill list
    """
    items = options.gateway().list_items("/v1/skills", {"scope": scope}, limit)
    options.print_table(items, _SKILL_COLUMNS)


_SKILL_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "scope": "scope",
    "age": age_cell("created_at"),
    "steps": "steps",
    "placeholders": lambda item: ", ".join(item["placeholders"]),
    "skill": text_cell("title", 160),
}


@skill.command("replay")
@memory_id_argument
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...", help="Values of the placeholders.")
@common_options
def replay_skill(options: CommonOptions, id: str, values: tuple[str, ...]) -> None:
    """Print the steps of a skill with its placeholders filled in.

    Example: reverie skill replay 3fa9c1d2 branch=main
    """
    pairs = [argument.partition("=") for argument in values]
    for name, equals, _ in pairs:
        if not equals:
            raise InvalidInput("value", f"expected NAME=VALUE, such as branch=main, not {name!r}")
    query = [(name, value) for name, _, value in pairs]
    response = options.gateway().request("GET", f"/v1/skills/{quote_segment(id)}/replay", query)
    print_warnings([f"the placeholder {{{name}}} has no value" for name in response["missing"]])
    options.print_result(response, response["text"])


fact = click.Group(
    "fact",
    help="Store facts with their confidence, sources and verification date.\n\n"
    'Example: reverie fact add postgres "18 has uuidv7()" -d postgresql.org',
    epilog=EXIT_CODES_HELP,
)


@fact.command("add")
@click.argument("topic", help="The topic.")
@click.argument("statement", metavar="STATEMENT", help="The fact, as one statement.")
@click.option(
    "--confidence",
    type=click.Choice(["high", "medium", "low"]),
    default="medium",
    help="The confidence.",
)
@click.option(
    "--verified",
    type=click.DateTime(["%Y-%m-%d"]),
    show_default="today",
    help="The day of verification.",
)
@click.option(
    "--domain", "-d", "domains", multiple=True, help="A source (host or page); may be repeated."
)
@click.option(
    "--reference", is_flag=True, help="Store a reference to a source instead of a lesson."
)
@scope_option
@common_options
def add_fact(
    options: CommonOptions, verified: datetime | None, reference: bool, **fields: Any
) -> None:
    """Store a fact; the same fact with a later date supersedes it.

    Example: reverie fact add postgres "18 has uuidv7()" -d postgresql.org
    """
    verified_on = (verified or datetime.now(UTC)).date().isoformat()
    kind = "reference" if reference else None
    body = drop_unset({**fields, "verified": verified_on, "kind": kind})
    response = options.gateway().request("POST", "/v1/facts", body=body)
    message = f"{response['status']} {short_id(response['id'])} under {response['key']}"
    options.print_result(response, message)


@fact.command("list")
@click.option("--topic", help="Only facts on this topic.")
@scope_option
@limit_option(50)
@common_options
def list_facts(options: CommonOptions, topic: str | None, scope: str | None, limit: int) -> None:
    """List facts, newest first.

    Example: reverie fact list --topic postgres
    """
    items = options.gateway().list_items("/v1/facts", {"topic": topic, "scope": scope}, limit)
    options.print_table(items, _FACT_COLUMNS)


_FACT_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "topic": lambda fact: fact["fact"]["topic"],
    "confidence": lambda fact: fact["fact"]["confidence"],
    "sources": lambda fact: fact["fact"]["corroborations"],
    "verified": lambda fact: fact["fact"]["verified"],
    "fact": lambda fact: one_line(fact["fact"]["statement"], 160),
}
