"""`reverie project`: links projects that belong together, and says which of them know something."""

from __future__ import annotations

from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import CommonOptions, Function, common_options
from reverie.cli.app.output import Columns, print_degraded

MAX_SHOWN = 200
"""More links than a project may have."""

app = click.Group(
    "project",
    help="Link projects that belong together, and find the one that knows something.\n\n"
    "Example: reverie project link shop payments",
    epilog=EXIT_CODES_HELP,
)


def _pair_arguments(function: Function) -> Function:
    linked = click.argument("linked", help="The other project.")
    return click.argument("project", help="The project.")(linked(function))


def _link_path(project: str, linked: str) -> str:
    return f"/v1/projects/{quote_segment(project)}/links/{quote_segment(linked)}"


@app.command("link")
@_pair_arguments
@click.option(
    "--discoverable",
    is_flag=True,
    help="Show the name of the other, and how much it knows, to readers of only one.",
)
@common_options
def link_projects(options: CommonOptions, project: str, linked: str, discoverable: bool) -> None:
    """Link two projects: recall in one also searches the other.

    Example: reverie project link shop payments
    """
    body = {"discoverable": discoverable}
    response = options.gateway().request("PUT", _link_path(project, linked), body=body)
    options.print_result(response, f"{response['project']} and {response['linked']} are linked")


@app.command("unlink")
@_pair_arguments
@common_options
def unlink_projects(options: CommonOptions, project: str, linked: str) -> None:
    """End the link of two projects.

    Example: reverie project unlink shop payments
    """
    response = options.gateway().request("DELETE", _link_path(project, linked))
    message = f"{response['project']} and {response['linked']} are no longer linked"
    options.print_result(response, message)


@app.command("links")
@click.argument("project", help="The project.")
@common_options
def list_links(options: CommonOptions, project: str) -> None:
    """List the projects that are linked to a project.

    Example: reverie project links shop
    """
    path = f"/v1/projects/{quote_segment(project)}/links"
    options.print_table(options.gateway().list_items(path, {}, MAX_SHOWN), _LINK_COLUMNS)


@app.command("which")
@click.argument("query", nargs=-1, required=True, help="The question.")
@common_options
def find_projects(options: CommonOptions, query: tuple[str, ...]) -> None:
    """Show which projects know the answer to a question.

    A linked project that the key may not read is named only if the link is discoverable.

    Example: reverie project which how are refunds booked
    """
    body = {"query": " ".join(query)}
    response = options.gateway().request("POST", "/v1/recall/projects", body=body)
    print_degraded(response)
    options.print_table(response["items"], _PROJECT_COLUMNS)


def _format_access(item: Any) -> str:
    return "yes" if item["readable"] else "no"


_LINK_COLUMNS: Columns = {
    "project": "linked",
    "readable": _format_access,
    "discoverable": lambda item: "yes" if item["discoverable"] else "no",
}
_PROJECT_COLUMNS: Columns = {
    "project": "project",
    "memories": "count",
    "relevance": "relevance",
    "readable": _format_access,
    "linked to": lambda item: " ".join(item["linked_to"]),
}
