"""Exit codes, and errors printed as one line or as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from reverie.cli.app.output import err, print_json
from reverie.domain.core.errors import ReverieError

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
"""The exit code of each problem code; every other problem is a failure."""

KEY_REMEDY = (
    "the gateway does not know the key: set REVERIE_API_KEY to a valid key, or unset it to use "
    "that of the home folder"
)
"""Messages of the gateway about headers help programs, not a person who runs a command."""


def print_error(error: ReverieError, as_json: bool = False) -> None:
    """Prints an error to standard error: one line, or JSON with its stable code."""
    code = error_code(error)
    print_error_line(code, KEY_REMEDY if code == "unauthenticated" else str(error), as_json)


def print_error_line(code: str, detail: str, as_json: bool) -> None:
    """Prints a problem code and its text to standard error, on one line or as JSON."""
    line = " ".join(detail.split())
    if as_json:
        print_json({"code": code, "detail": line}, indent=None, is_error=True)
    else:
        from rich.markup import escape

        err().print(f"[red]reverie:[/] {escape(line)}")


def error_code(error: ReverieError) -> str:
    """The stable code of an error; of a refused call, the code that the gateway sent."""
    problem = getattr(error, "problem", None)
    if problem is None:
        return error.code
    return str(problem["code"] if isinstance(problem, Mapping) else problem.code)


def exit_code(error: ReverieError) -> int:
    """The exit code of a command that ends with this error."""
    return _EXIT_CODES.get(error_code(error), FAILED)
