"""`reverie predict`: the files that will be touched next, and what is known of them."""

from __future__ import annotations

from typing import Any

import click

from reverie.cli.app.options import (
    CommonOptions,
    Function,
    common_options,
    drop_unset,
    limit_option,
    project_option,
    session_option,
)
from reverie.cli.app.output import Columns, build_table, print_degraded, short_id_cell, text_cell


def touched_options(function: Function) -> Function:
    """Adds `--edited` and `--test`."""
    tests = click.option(
        "--test", "tests", multiple=True, help="A test that was run; may be repeated."
    )
    edited = click.option(
        "--edited", multiple=True, help="A file that was edited lately; may be repeated."
    )
    return edited(tests(function))


@click.command("predict")
@project_option
@session_option
@click.option("--branch", help="Count the commits of this branch, too.")
@touched_options
@click.option("--file", "-f", "files", multiple=True, help="An open file; may be repeated.")
@limit_option(5, 20)
@common_options
def predict(
    options: CommonOptions, project: str | None, session: str | None, **fields: Any
) -> None:
    """Predict the files that will be touched next, and show what is known of them.

    Example: reverie predict --project shop --edited src/cart.py
    """
    client = options.gateway(project)
    body = {
        **fields,
        "project": None if session else client.project,
        "session": client.resolve_session_id(session),
    }
    response = client.request("POST", "/v1/predict", body=drop_unset(body))
    print_degraded(response)
    tables = [build_table(response["files"], _FILE_COLUMNS)]
    if response["memories"]:
        tables.append(build_table(response["memories"], _MEMORY_COLUMNS))
    options.print_result(response, *tables)


_FILE_COLUMNS: Columns = {"file": "path", "score": "score", "reason": "reason"}
_MEMORY_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "kind": "kind",
    "memory": text_cell("content", 200),
    "reason": "reason",
}
