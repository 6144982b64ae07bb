"""What `reverie up` shows on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from reverie.cli.screen import Screen


def test_the_schemas_steps_are_counted_while_they_go_on() -> None:
    shown = io.StringIO()
    with Screen(Console(file=shown, force_terminal=True, width=100)) as screen:
        screen.migrating("0147_postings[copied]", 3, 5)
    assert "up to date, 3 of 5: 0147_postings[copied]" in shown.getvalue()
