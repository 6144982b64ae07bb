"""What all commands share: common options, exit codes, settings, consoles and error output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.domain.core.errors import InvalidInput, ReverieError

if TYPE_CHECKING:
    from rich.console import Console

    from reverie.runtime.settings.settings import Settings

OK = 0
FAILED = 1
USAGE = 2
NOT_RUNNING = 3
NOT_FOUND = 4
NOT_PERMITTED = 5
CONFLICT = 6
TOO_MANY_REQUESTS = 7

EXIT_CODES_HELP = (
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 not running, 4 not found, 5 not permitted, 6 conflict, "
    "7 too many requests."
)

_EXIT_CODES = {
    "invalid": USAGE,
    "malformed": USAGE,
    "too_large": USAGE,
    "method_not_allowed": USAGE,
    "unauthenticated": NOT_PERMITTED,
    "forbidden": NOT_PERMITTED,
    "not_found": NOT_FOUND,
    "conflict": CONFLICT,
    "precondition_failed": CONFLICT,
    "idempotency_mismatch": CONFLICT,
    "unavailable": NOT_RUNNING,
    "too_many": TOO_MANY_REQUESTS,
}
"""What each code of a problem ends a command with; all others are failures."""

Home = Annotated[
    Path | None,
    typer.Option("--home", help="The folder that holds all data (default ~/.reverie)."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="Any setting; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def resolve_settings(
    home: Path | None, sets: Sequence[str] | None, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings of this command: flags, then `--set`, environment, files."""
    from reverie.runtime.settings.loading import load_settings

    overrides = {
        name: value for name, value in {"home": home, **(flags or {})}.items() if value is not None
    }
    return load_settings({**parse_assignments(sets or ()), **overrides})


def parse_assignments(sets: Sequence[str]) -> dict[str, str]:
    """The settings that `--set NAME=VALUE` names. Raises `InvalidInput`."""
    settings: dict[str, str] = {}
    for assignment in sets:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidInput(
                "--set", f"expected NAME=VALUE, as in recall_port=4000, not {assignment!r}"
            )
        settings[name.strip().lower().replace("-", "_")] = value
    return settings


def out() -> Console:
    """Standard output; colours only on a terminal and without NO_COLOR."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def err() -> Console:
    """Standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2, default=str))


def print_error(error: ReverieError, as_json: bool = False) -> None:
    """An error as one line on standard error, or as JSON with its stable code."""
    line = " ".join(str(error).split())
    if as_json:
        typer.echo(json.dumps({"code": error_code(error), "detail": line}), err=True)
    else:
        err().print(f"[red]reverie:[/] {_escape_markup(line)}")


def error_code(error: ReverieError) -> str:
    """The stable code of an error: of a refusal, the one that the gateway gave."""
    problem = getattr(error, "problem", None)
    if problem is None:
        return error.code
    return str(problem["code"] if isinstance(problem, Mapping) else problem.code)


def exit_code(error: ReverieError) -> int:
    """What a command ends with after an error."""
    return _EXIT_CODES.get(error_code(error), FAILED)


def abbreviate_home(path: Path | str) -> str:
    """A path with `~` for the user's home folder."""
    text, home = str(path), str(Path.home())
    return "~" + text[len(home) :] if text == home or text.startswith(home + "/") else text


def _escape_markup(text: str) -> str:
    from rich.markup import escape

    return escape(text)


Id = Annotated[str, typer.Argument(help="A memory's id; its last eight digits will do.")]
Project = Annotated[
    str | None,
    typer.Option("--project", "-p", help="Default: the project of this folder (reverie.toml)."),
]
Scope = Annotated[str | None, typer.Option("--scope", help="As project/shop or global.")]
Session = Annotated[str | None, typer.Option("--session", help="A session's id, also short.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Kept with the version.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Default: the key's.")]
Depth = Annotated[int, typer.Option("--depth", min=1, max=5, help="How many edges far.")]
