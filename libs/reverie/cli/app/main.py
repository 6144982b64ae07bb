"""The `reverie` command: runs the root group and prints errors on one line."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass

import click

from reverie.cli.app.commands import LazyGroup
from reverie.cli.app.errors import (
    EXIT_CODES_HELP,
    FAILED,
    exit_code,
    print_error,
    print_error_line,
)
from reverie.domain.core.errors import ReverieError


@dataclass
class UnexpectedError(ReverieError):
    """{kind}: {reason} (this should not happen; REVERIE_LOG_LEVEL=debug shows where)"""

    kind: str
    reason: str


@dataclass
class UnusableFile(ReverieError):
    """{path}: {reason}"""

    path: str
    reason: str


@click.group(
    "reverie",
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog=EXIT_CODES_HELP,
)
@click.version_option(package_name="reverie", message="reverie %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Long-term memory for coding agents.

    Example: reverie up
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    """Runs the command line. An error is one line on standard error, and an exit code."""
    as_json = "--json" in sys.argv
    try:
        sys.exit(app.main(prog_name="reverie", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context else ""
        if context and (example := re.search(r"Example: (.+)", context.command.help or "")):
            hint = f"; for example: {example[1]}{hint}"
        print_error_line("invalid", f"{error.format_message().rstrip('.')}{hint}", as_json)
        sys.exit(error.exit_code)
    except click.Abort:
        hint = "" if sys.stdin.isatty() else ": without a terminal, confirm with --yes"
        print_error_line("aborted", f"stopped; nothing more was done{hint}", as_json)
        sys.exit(FAILED)
    except Exception as error:
        sys.exit(report_failure(error, as_json))


def report_failure(error: Exception, as_json: bool) -> int:
    """Prints an error on one line, and returns the exit code for it.

    Raises one that nobody expected where the log level is debug.
    """
    if isinstance(error, ReverieError):
        print_error(error, as_json)
        return exit_code(error)
    if os.environ.get("REVERIE_LOG_LEVEL", "").lower() == "debug":
        raise error
    print_error(_as_reverie_error(error), as_json)
    return FAILED


def _as_reverie_error(error: Exception) -> ReverieError:
    """Names a file that cannot be read or written; any other error is a defect."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return UnusableFile(str(error.filename), error.strerror)
    return UnexpectedError(type(error).__name__, (str(error).splitlines() or [""])[0])


if __name__ == "__main__":
    main()
