"""`reverie agents`: the agents of the engine, and what they spent."""

from __future__ import annotations

import json

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import Columns, read_text
from reverie.domain.core.errors import InvalidInput

app = click.Group(
    "agents",
    help="List and change the agents of the engine.\n\nExample: reverie agents list",
    epilog=EXIT_CODES_HELP,
)


@app.command("list")
@common_options
def list_agents(options: CommonOptions) -> None:
    """List the agents, with their models.

    Example: reverie agents list
    """
    found = options.gateway().request("GET", "/v1/agents")
    if options.json:
        options.print_result(found)
    else:
        options.print_table(found["items"], _COLUMNS)


@app.command("put")
@click.argument("name", help="The name, a slug.")
@click.argument("spec", help="JSON: models, persona, language, mode, tools, ask, budget.")
@common_options
def put_agent(options: CommonOptions, name: str, spec: str) -> None:
    """Create or replace an agent. It needs an admin's key.

    Example: reverie agents put reviewer '{"persona": "Be brief."}'
    """
    try:
        body = json.loads(read_text(spec))
    except ValueError as error:
        raise InvalidInput("spec", f"is no JSON: {error}") from None
    answer = options.gateway().request("PUT", f"/v1/agents/{quote_segment(name)}", body=body)
    options.print_result(answer, f"{answer['name']} is an agent now")


@app.command("delete")
@click.argument("name", help="The name.")
@common_options
def delete_agent(options: CommonOptions, name: str) -> None:
    """Delete an agent; a changed built-in agent becomes as it was.

    Example: reverie agents delete reviewer
    """
    answer = options.gateway().request("DELETE", f"/v1/agents/{quote_segment(name)}")
    options.print_result(answer, f"deleted {answer['name']}")


@app.command("spend")
@common_options
def show_spend(options: CommonOptions) -> None:
    """Show what agents spent today, in tokens and millionths of a dollar.

    Example: reverie agents spend
    """
    answer = options.gateway().request("GET", "/v1/agents/spend")
    lines = [
        f"{name}  {of['tokens']} tokens  {of['micro_usd']} micro-USD"
        for name, of in answer["agents"].items()
    ]
    options.print_result(answer, *(lines or ["nothing yet"]))


_COLUMNS: Columns = {
    "name": "name",
    "models": lambda agent: ", ".join(agent["spec"]["models"]),
    "mode": lambda agent: agent["spec"]["mode"],
    "built in": "built_in",
}
