"""What `reverie up` and `reverie doctor` print."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from reverie.cli.app.output import build_table, plural, print_plain
from reverie.cli.operate.doctor.service_checks import find_backlog_problems
from reverie.cli.operate.service_metrics import MetricsSnapshot, list_failed
from reverie.cli.operate.up_display import UpDisplay
from reverie.embedded.reporting import Addresses


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


def test_a_key_that_the_environment_names_is_not_to_be_set_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count_exports(key: str | None, key_file: Path | None) -> int:
        shown, services = io.StringIO(), {"recall": "http://127.0.0.1:1"}
        UpDisplay(Console(file=shown, width=100)).up(
            Addresses(tmp_path, services, "", "", api_key=key, key_file=key_file)
        )
        assert shown.getvalue().count("Bearer $REVERIE_API_KEY") == 2
        return shown.getvalue().count("export REVERIE_API_KEY=")

    monkeypatch.delenv("REVERIE_API_KEY", raising=False)
    # The first key of an external database may not be known here.
    assert count_exports(None, None) == 1
    monkeypatch.setenv("REVERIE_API_KEY", "rv_given")
    assert count_exports("rv_given", None) == 0
    assert count_exports("rv_own", tmp_path / "api_key") == 1


def test_what_runs_goes_on_when_nobody_can_read_its_notes() -> None:
    script = (
        "import os\n"
        "from reverie.cli.operate.up_successor import PlainNotes\n"
        "for as_json in (False, True):\n"
        "    for _ in range(2):\n"
        "        PlainNotes(as_json).note('the process of the services ended')\n"
        "os._exit(7)"
    )
    reader, closed_pipe = os.pipe()
    os.close(reader)
    full_disk = os.open("/dev/full", os.O_WRONLY)
    for output in (closed_pipe, full_disk):
        done = subprocess.run([sys.executable, "-c", script], stdout=output, stderr=output)
        os.close(output)
        assert done.returncode == 7


def test_a_row_of_a_table_stays_one_line_in_a_pipe_unless_columns_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": "c5c9762e", "text": "Prices are kept in cents. " * 8 + "the end"}

    def print_row() -> list[str]:
        print_plain(build_table([row], {"id": "id", "memory": "text"}))
        return capsys.readouterr().out.splitlines()

    monkeypatch.delenv("COLUMNS", raising=False)
    _, line = print_row()
    assert "c5c9762e" in line
    assert "the end" in line
    monkeypatch.setenv("COLUMNS", "60")
    lines = print_row()
    assert len(lines) > 2
    assert all(len(line) <= 60 for line in lines)


def test_one_thing_is_counted_in_the_singular() -> None:
    counts = [plural(count, noun) for noun in ("turn", "memory", "key") for count in (0, 1, 1_200)]
    assert counts == [
        *("0 turns", "1 turn", "1,200 turns"),
        *("0 memories", "1 memory", "1,200 memories"),
        *("0 keys", "1 key", "1,200 keys"),
    ]
    one = {("reverie_dead_letters", frozenset[tuple[str, str]]()): 1.0}
    [finding] = find_backlog_problems({"dream": MetricsSnapshot(one)})
    assert finding.message == "1 dead letter"


def test_a_backlog_that_drains_is_no_warning_and_one_that_stands_still_is() -> None:
    def scrape(waiting: float) -> dict[str, MetricsSnapshot]:
        series = ("reverie_memories_unenriched", frozenset[tuple[str, str]]())
        return {"ingest": MetricsSnapshot({series: waiting})}

    levels = [
        [finding.level for finding in find_backlog_problems(scrape(now), earlier)]
        for now, earlier in (
            (4_000.0, scrape(4_100.0)),
            (4_100.0, scrape(4_100.0)),
            (4_200.0, scrape(4_100.0)),
            (4_000.0, None),
            (900.0, None),
        )
    ]
    assert levels == [["ok"], ["warning"], ["warning"], ["warning"], []]


def test_work_that_was_given_up_is_counted_and_explained() -> None:
    values = {
        ("reverie_memories_failed", frozenset[tuple[str, str]]()): 2.0,
        ("reverie_changes_failed", frozenset[tuple[str, str]]()): 1.0,
        ("reverie_memories_unenriched", frozenset[tuple[str, str]]()): 9.0,
    }
    scrapes = {"ingest": MetricsSnapshot(values), "staleness": MetricsSnapshot({})}
    assert list_failed(scrapes) == {"failed memories": 2, "failed git changes": 1}
    told = [finding.message for finding in find_backlog_problems(scrapes)]
    assert [message.partition(" cannot")[0] for message in told] == ["2 memories", "1 git change"]
