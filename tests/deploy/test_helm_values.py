"""The values of the Helm chart: what the schema refuses, and that it names every value."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

from tests.deploy.checker_programs import helm
from tests.deploy.test_helm_chart import CHART


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("recal.port=1", "additional properties"),
        ("settings.database_url=postgresql://a", "database_url"),
        ("image.digest=latest", "digest"),
        ("dream.keda.trigger=cpu", "trigger"),
        ("secret.name=", "name"),
        ("dream.keda.enabled=true", "dream.api.enabled"),
        ("recall.port=70000", "port"),
        ("oidc.issuer=https://login.example.com", "audience"),
        ("limits.speed=3", "speed"),
        ("tls.certificate.enabled=true", "name"),
    ],
)
def test_invalid_values_are_refused_by_name(wrong: str, why: str) -> None:
    done = subprocess.run(
        [str(helm()), "template", "reverie", ".", "--set", wrong],
        cwd=CHART,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert why in done.stderr


def test_the_values_schema_names_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert schema["properties"].keys() == values.keys()
    assert schema["additionalProperties"] is False


def test_the_page_on_size_names_the_memory_that_the_chart_requests() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    page = (CHART.parents[1] / "docs/operate/size.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \| \d+ MB \| (\d+) MiB \|$", page, re.M))
    services = ("recall", "ingest", "dream", "staleness")
    for name in services:
        assert values[name]["resources"]["requests"]["memory"] == f"{told[name]}Mi", name
    # Examples for production never ask for less than what the page says is needed.
    example = yaml.safe_load((CHART / "values-production.yaml").read_text())
    for name in services:
        asked = example[name].get("resources", {}).get("requests", {}).get("memory")
        assert asked is None or int(asked.removesuffix("Mi")) >= int(told[name]), name
