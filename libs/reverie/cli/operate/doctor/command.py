"""`reverie doctor`: runs all checks and prints the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from reverie.cli.app.common import FAILED, Home, Json, Sets, out, print_json, resolve_settings

if TYPE_CHECKING:
    from reverie.cli.operate.doctor.service_checks import Finding

MARKS = {"ok": "[green]ok[/]  ", "note": "[yellow]note[/]", "error": "[red]bad[/] "}


def doctor(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Look at everything Reverie needs, and say what is wrong and how to mend it.

    Example: [bold]reverie doctor[/]

    Exit codes: 0 nothing is wrong, 1 something is, 2 usage.
    """
    import logging
    from dataclasses import asdict

    import structlog

    from reverie.cli.operate.doctor.machine_checks import run_checks

    # What clients log while they try is said here as findings.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    findings = run_checks(resolve_settings(home, sets))
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print_findings(findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(FAILED)


def _print_findings(findings: list[Finding]) -> None:
    from rich.markup import escape

    console = out()
    for finding in findings:
        console.print(f"{MARKS[finding.level]}  {escape(finding.what)}")
        if finding.mend:
            console.print(f"      {escape(finding.mend)}", style="dim")
    errors = sum(finding.level == "error" for finding in findings)
    console.print(f"\n{errors} to mend" if errors else "\nAll is well.")
