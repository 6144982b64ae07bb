"""Every command has help, an example, JSON output, documented options and exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click
from click.testing import CliRunner

from reverie.cli.app.commands import COMMANDS as TABLE
from reverie.cli.app.errors import EXIT_CODES_HELP, TOO_MANY_REQUESTS, exit_code
from reverie.cli.app.gateway_client import GatewayError
from reverie.cli.app.main import app
from reverie.contracts.problems import HTTP_STATUS

NO_JSON = {
    "hook": "speaks JSON by itself",
    "mcp": "speaks JSON by itself",
    "serve": "writes its log, which is JSON off a terminal",
    "demo": "plays to somebody who watches",
    "completion": "prints a script",
}


def _walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    inside = getattr(command, "commands", None)
    for below, one in (inside or {}).items():
        yield from _walk(one, f"{name} {below}")
    if not inside:
        yield name, command


NAMES = list(TABLE)
ROOT_CONTEXT = click.Context(app)
COMMANDS = dict(
    found for name in NAMES for found in _walk(app.get_command(ROOT_CONTEXT, name), name)
)


def test_every_command_has_help_with_an_example_and_supports_json() -> None:
    for name, command in COMMANDS.items():
        assert re.search(rf"^\s*Example: (.* )?reverie {name}\b", command.help, re.M), name
        takes = {option for one in command.params for option in getattr(one, "opts", ())}
        assert ("--json" in takes) != (name in NO_JSON), name


def test_every_option_has_a_description() -> None:
    silent = [
        f"{name} {one.opts[0]}"
        for name, command in COMMANDS.items()
        for one in command.params
        if not getattr(one, "help", None) and not getattr(one, "hidden", False)
    ]
    assert silent == []


def test_the_help_of_reverie_names_every_command_and_exit_code() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert shown.split() == CliRunner().invoke(app, []).stdout.split()
    lines = [line.strip().split("  ")[0] for line in shown.splitlines()]
    assert [name for name in NAMES if name not in lines] == []
    words = " ".join(shown.split())
    for code in EXIT_CODES_HELP.removeprefix("Exit codes: ").removesuffix(".").split(", "):
        assert code in words


def test_every_problem_has_a_documented_exit_code() -> None:
    for code in HTTP_STATUS:
        refused = exit_code(GatewayError("no", {"code": code}))
        assert f"{refused} " in EXIT_CODES_HELP
        assert (refused == TOO_MANY_REQUESTS) == (code == "too_many")
