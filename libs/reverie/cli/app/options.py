"""Options that many commands share, and the settings that they select."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
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
project_option = click.option(
    "--project", "-p", help="The project; default: the one that reverie.toml names."
)
scope_option = click.option("--scope", help="A scope, such as project/shop or global.")
session_option = click.option("--session", help="A session's id, in full or shortened.")
reason_option = click.option("--reason", help="The reason; it is stored with the version.")
agent_option = click.option("--agent", help="The agent; default: the agent of the key.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would happen, and stop.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
tenant_option = click.option("--tenant", default="default", help="The tenant.")


def common_options(function: Function) -> Function:
    """Adds `--home`, `--set` and `--json`."""
    return home_option(set_option(json_option(function)))


def limit_option(default: int, maximum: int = 10_000) -> Callable[[Function], Function]:
    """Adds `--limit`, the largest number of items to show."""
    return click.option(
        "--limit",
        "-n",
        type=click.IntRange(1, maximum),
        default=default,
        help="The largest number of items to show.",
    )


def resolve_settings(
    home: Path | None, sets: Sequence[str], flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings of a command: its flags, then `--set`, the environment and files."""
    from reverie.runtime.settings.loading import load_settings

    overrides = {
        name: value for name, value in {"home": home, **(flags or {})}.items() if value is not None
    }
    return load_settings({**parse_assignments(sets), **overrides})


def parse_assignments(sets: Sequence[str]) -> dict[str, str]:
    """The settings that `--set NAME=VALUE` gives. Raises `InvalidInput`."""
    settings: dict[str, str] = {}
    for assignment in sets:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidInput(
                "--set", f"expected NAME=VALUE, as in recall_port=4000, not {assignment!r}"
            )
        settings[name.strip().lower().replace("-", "_")] = value
    return settings


def drop_unset(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given: neither None nor an option that was not used."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}
