"""What `reverie up` and `reverie doctor` print."""

from __future__ import annotations

import io

from rich.console import Console

from reverie.cli.operate.doctor.service_checks import find_backlog_problems
from reverie.cli.operate.service_metrics import MetricsSnapshot
from reverie.cli.operate.up_display import UpDisplay


def test_a_missing_model_is_named_in_the_command_that_downloads_it() -> None:
    lacks = frozenset({("model", "multilingual-e5-small-q4")})
    (one,) = find_backlog_problems(
        {"recall": MetricsSnapshot({("reverie_model_loaded", lacks): 0.0})}
    )
    assert one.message == "recall works without multilingual-e5-small-q4"
    assert "`reverie models pull multilingual-e5-small-q4`" in one.remedy


def test_schema_steps_are_counted_as_they_run() -> None:
    shown = io.StringIO()
    with UpDisplay(Console(file=shown, force_terminal=True, width=100)) as screen:
        screen.migrating("0147_postings[copied]", 3, 5)
    assert "schema, 3 of 5: 0147_postings[copied]" in shown.getvalue()
