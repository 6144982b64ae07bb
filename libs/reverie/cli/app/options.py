"""Options that many commands share, and what they select: settings, gateway, output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reverie.cli.app.gateway_settings import parse_assignments
from reverie.cli.app.output import EMPTY_MESSAGE, Columns, build_table, print_json, print_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.cli.app.gateway_client import GatewayClient
    from reverie.runtime.settings.settings import Settings

Function = TypeVar("Function", bound=Callable[..., Any])

home_option = click.option(
    "--home",
    type=click.Path(path_type=Path),
    help="The folder that holds all data (default ~/.reverie).",
)
set_option = click.option(
    "--set",
    "-s",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Override a setting; may be repeated.",
)
json_option = click.option("--json", is_flag=True, help="Print JSON.")
memory_id_argument = click.argument("id", help="A memory's id, or its last eight digits.")
session_argument = click.argument("session", help="A session's id, in full or shortened.")
project_option = click.option(
    "--project", "-p", help="The project; default: the one that reverie.toml names."
)
scope_option = click.option("--scope", help="A scope, such as project/shop or global.")
scopes_option = click.option(
    "--scope", "scopes", multiple=True, help="Only this scope; may be repeated."
)
kinds_option = click.option(
    "--kind", "-k", "kinds", multiple=True, help="Only this kind; may be repeated."
)
session_option = click.option("--session", help="A session's id, in full or shortened.")
budget_option = click.option(
    "--budget", "budget_tokens", type=click.IntRange(min=50, max=100000), help="The token budget."
)
reason_option = click.option("--reason", help="The reason; it is stored with the version.")
agent_option = click.option("--agent", help="The agent; default: the agent of the key.")
attach_option = click.option(
    "--attach",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text or an image to send with it; may be repeated.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would happen, and stop.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
tenant_option = click.option("--tenant", default="default", help="The tenant.")


@dataclass(frozen=True)
class CommonOptions:
    """The values of `--home`, `--set` and `--json`, which every command has."""

    home: Path | None
    sets: tuple[str, ...]
    json: bool

    def settings(self, flags: Mapping[str, object] | None = None) -> Settings:
        """The settings that these options and the flags of the command select."""
        return resolve_settings(self.home, self.sets, flags)

    def gateway(self, project: str | None = None) -> GatewayClient:
        """A client of the configured gateway, else of the one that runs on the home folder."""
        from reverie.cli.app.gateway_client import create_client

        return create_client(self.home, self.sets, project)

    def print_result(self, result: Any, *lines: Any) -> None:
        """Prints the result with `--json`, else these lines and tables."""
        if self.json:
            print_json(result)
            return
        for line in lines:
            print_plain(line)

    def print_table(
        self, items: Sequence[Any], columns: Columns, *, empty: str = EMPTY_MESSAGE
    ) -> None:
        """Prints the items with `--json`, else as a table."""
        self.print_result(items, *([] if self.json else [build_table(items, columns, empty)]))


def common_options(function: Function) -> Function:
    """Adds `--home`, `--set` and `--json`; the function gets them as its first argument."""

    @wraps(function)
    def command(home: Path | None, sets: tuple[str, ...], json: bool, **arguments: Any) -> Any:
        return function(CommonOptions(home, sets, json), **arguments)

    return home_option(set_option(json_option(command)))  # type: ignore[return-value]


def limit_option(default: int | None, maximum: int = 10_000) -> Callable[[Function], Function]:
    """Adds `--limit`, the largest number of items to show."""
    return click.option(
        "--limit",
        "-n",
        type=click.IntRange(1, maximum),
        default=default,
        help="The largest number of items to show.",
    )


tier_option = click.option(
    "--tier",
    type=click.Choice(["hot", "warm", "cold"]),
    help="When it is loaded; a tier that is set here stays.",
)


def folder_option(*names: str, help: str) -> Callable[[Function], Function]:
    """Adds an option for a folder, which is the working folder by default."""
    return click.option(
        *names, type=click.Path(path_type=Path), default=Path(), show_default="here", help=help
    )


def resolve_settings(
    home: Path | None, sets: Sequence[str], flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings of a command: its flags, then `--set`, the environment and files."""
    from reverie.runtime.settings.loading import load_settings

    return load_settings({**parse_assignments(sets), **drop_unset({"home": home, **(flags or {})})})


def drop_unset(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Drops fields that were not given: None, and options that were not used."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}
