"""What `reverie doctor` makes of what services tell."""

from __future__ import annotations

from reverie.cli.findings_backlog import wrong
from reverie.cli.metering import Scrape


def test_a_model_that_is_missing_is_named_in_the_command_that_fetches_it() -> None:
    lacks = frozenset({("model", "multilingual-e5-small-q4")})
    (one,) = wrong({"recall": Scrape({("reverie_model_loaded", lacks): 0.0})})
    assert one.what == "recall works without multilingual-e5-small-q4"
    assert "`reverie models pull multilingual-e5-small-q4`" in one.mend
