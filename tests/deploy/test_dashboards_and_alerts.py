"""Dashboards load, alerts are valid, and each alert has a runbook."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.prometheus import panels, program, queries

ROOT = Path(__file__).parents[2]
BOARDS = sorted((ROOT / "deploy" / "dashboards").glob("*.json"))
ALERTS = ROOT / "deploy" / "alerts"


def _loaded(path: Path) -> dict[str, Any]:
    board: dict[str, Any] = json.loads(path.read_text())
    return board


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_dashboard_has_what_grafana_needs_to_load_it(path: Path) -> None:
    board = _loaded(path)
    assert board["uid"] == path.stem
    assert len(board["uid"]) <= 40
    assert board["schemaVersion"] >= 36
    [source] = [one for one in board["templating"]["list"] if one["name"] == "datasource"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    assert "id" not in board
    for panel in panels(board):
        wanted = {"type": "prometheus", "uid": "${datasource}"}
        assert panel["datasource"] == wanted
        assert panel["targets"], panel["title"]
        assert all(target["datasource"] == wanted for target in panel["targets"])
        assert {"title", "fieldConfig", "options", "gridPos"} <= panel.keys()
        names = [target["refId"] for target in panel["targets"]]
        assert len(set(names)) == len(names)
    # Panels have ids of their own, and do not overlap.
    ids = Counter(panel["id"] for panel in board["panels"])
    assert set(ids.values()) == {1}
    cells = Counter(
        cell
        for panel in board["panels"]
        for at in [panel["gridPos"]]
        for cell in product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"]))
    )
    assert set(cells.values()) == {1}
    assert max(x for x, _ in cells) < 24


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ALERTS / "reverie.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    text = (ROOT / "docs" / "operate" / "troubleshoot.md").read_text()
    named = [rule["alert"] for rule in _rules()]
    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) == named
    for rule in _rules():
        section = f"docs/operate/troubleshoot.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook"] == section
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["for"]


def test_promtool_accepts_the_alerts_and_they_fire_as_expected() -> None:
    for arguments in (["check", "rules", "reverie.yml"], ["test", "rules", "tests.yml"]):
        done = _promtool(*arguments, folder=ALERTS)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_every_query_of_the_dashboards(tmp_path: Path) -> None:
    assert len(BOARDS) >= 4
    asked = [query for path in BOARDS for query in queries(_loaded(path))]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(asked)]
    (tmp_path / "queries.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]})
    )
    done = _promtool("check", "rules", "--lint=none", "queries.yml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def _promtool(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [program("promtool"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
