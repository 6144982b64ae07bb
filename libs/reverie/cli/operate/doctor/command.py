"""`reverie doctor`: runs all checks and prints the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import FAILED
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import out, print_json

if TYPE_CHECKING:
    from reverie.cli.operate.doctor.service_checks import Finding

MARKS = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "error": "[red]error[/]  "}


@click.command("doctor")
@common_options
def doctor(options: CommonOptions) -> None:
    """Check everything that Reverie needs, and print problems with their remedies.

    Example: reverie doctor

    Exit codes: 0 no errors, 1 errors, 2 usage.
    """
    import logging
    from dataclasses import asdict

    import structlog

    from reverie.cli.operate.doctor.machine_checks import run_checks

    # The findings report what the clients would log.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    findings = run_checks(options.settings())
    if options.json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print_findings(findings)
    if any(finding.level == "error" for finding in findings):
        raise click.exceptions.Exit(FAILED)


def _print_findings(findings: list[Finding]) -> None:
    from rich.markup import escape

    console = out()
    for finding in findings:
        console.print(f"{MARKS[finding.level]}  {escape(finding.message)}")
        if finding.remedy:
            console.print(f"         {escape(finding.remedy)}", style="dim")
    errors = sum(finding.level == "error" for finding in findings)
    console.print(f"\n{errors} errors" if errors else "\nNo errors.")
