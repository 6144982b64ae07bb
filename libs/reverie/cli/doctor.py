"""`reverie doctor`: what is wrong, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from reverie.cli.common import FAILED, Home, Json, Sets, out, print_json, settings_from

if TYPE_CHECKING:
    from reverie.cli.finding import Finding

MARKS = {"ok": "[green]ok[/]  ", "note": "[yellow]note[/]", "error": "[red]bad[/] "}


def doctor(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Look at everything Reverie needs, and say what is wrong and how to mend it.

    Example: [bold]reverie doctor[/]

    Exit codes: 0 nothing is wrong, 1 something is, 2 usage.
    """
    import logging
    from dataclasses import asdict

    import structlog

    from reverie.cli.findings import examine

    # What clients log while they try is said here as findings.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    found = examine(settings_from(home, sets))
    if json:
        print_json([asdict(finding) for finding in found])
    else:
        _print(found)
    if any(finding.level == "error" for finding in found):
        raise typer.Exit(FAILED)


def _print(found: list[Finding]) -> None:
    from rich.markup import escape

    console = out()
    for finding in found:
        console.print(f"{MARKS[finding.level]}  {escape(finding.what)}")
        if finding.mend:
            console.print(f"      {escape(finding.mend)}", style="dim")
    errors = sum(finding.level == "error" for finding in found)
    console.print(f"\n{errors} to mend" if errors else "\nAll is well.")
