"""What all commands share: settings, exit codes, how things are printed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.domain.errors import Invalid, ReverieError

if TYPE_CHECKING:
    from rich.console import Console

    from reverie.runtime.settings import Settings

OK = 0
FAILED = 1
USAGE = 2
NOT_RUNNING = 3
NOT_FOUND = 4
NOT_PERMITTED = 5
CONFLICT = 6
TOO_MANY = 7

CODES = (
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 not running, 4 not found, 5 not permitted, 6 conflict, "
    "7 too many requests."
)

_EXITS = {
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
    "too_many": TOO_MANY,
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


def settings_from(
    home: Path | None, sets: Sequence[str] | None, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings of this command: flags, then `--set`, environment, files."""
    from reverie.runtime.setting_sources import load_settings

    given = {k: v for k, v in {"home": home, **(flags or {})}.items() if v is not None}
    return load_settings({**pairs(sets or ()), **given})


def pairs(sets: Sequence[str]) -> dict[str, str]:
    """The settings that `--set NAME=VALUE` names. Raises `Invalid`."""
    found: dict[str, str] = {}
    for one in sets:
        name, equals, value = one.partition("=")
        if not equals:
            raise Invalid("--set", f"expected NAME=VALUE, as in recall_port=4000, not {one!r}")
        found[name.strip().lower().replace("-", "_")] = value
    return found


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


def say(error: ReverieError, as_json: bool = False) -> None:
    """An error as one line on standard error, or as JSON with its stable code."""
    line = " ".join(str(error).split())
    if as_json:
        typer.echo(json.dumps({"code": code_of(error), "detail": line}), err=True)
    else:
        err().print(f"[red]reverie:[/] {_escaped(line)}")


def code_of(error: ReverieError) -> str:
    """The stable code of an error: of a refusal, the one that the gateway gave."""
    problem = getattr(error, "problem", None)
    if problem is None:
        return error.code
    return str(problem["code"] if isinstance(problem, Mapping) else problem.code)


def exit_code(error: ReverieError) -> int:
    """What a command ends with after an error."""
    return _EXITS.get(code_of(error), FAILED)


def short_home(path: Path | str) -> str:
    """A path with `~` for the user's home folder."""
    text, own = str(path), str(Path.home())
    return "~" + text[len(own) :] if text == own or text.startswith(own + "/") else text


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
