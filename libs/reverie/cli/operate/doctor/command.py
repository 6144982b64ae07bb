"""`reverie doctor`: runs all checks and prints the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import FAILED
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import out, plural, print_json

if TYPE_CHECKING:
    from reverie.cli.operate.doctor.findings import Finding
    from reverie.runtime.settings.settings import Settings

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
    from rich.markup import escape

    # The findings report what the clients would log.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    findings = run_checks(options.settings())
    errors = sum(finding.level == "error" for finding in findings)
    if options.json:
        print_json([asdict(finding) for finding in findings])
    else:
        console = out()
        for finding in findings:
            console.print(f"{MARKS[finding.level]}  {escape(finding.message)}")
            if finding.remedy:
                console.print(f"         {escape(finding.remedy)}", style="dim")
        console.print(f"\n{plural(errors, 'error')}" if errors else "\nNo errors.")
    if errors:
        raise click.exceptions.Exit(FAILED)


def run_checks(settings: Settings) -> list[Finding]:
    """Returns the findings of all checks; a check comes before those that depend on it."""
    from concurrent.futures import ThreadPoolExecutor

    from reverie.cli.operate.doctor import machine_checks, service_checks
    from reverie.cli.operate.doctor.findings import error
    from reverie.domain.core.errors import ReverieError
    from reverie.embedded.home import existing_home

    home = existing_home(settings.home)

    def run(check: machine_checks.Check) -> list[Finding]:
        try:
            return list(check(settings, home))
        except ReverieError as problem:
            return [error(str(problem))]

    with ThreadPoolExecutor() as pool:
        results = pool.map(run, (*machine_checks.CHECKS, *service_checks.CHECKS))
        return [finding for findings in results for finding in findings]
