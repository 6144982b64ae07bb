"""Dockerfile, compose file and server configurations pass their own checkers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from reverie.embedded.servers.binaries import find_nats_server
from reverie.runtime.settings.settings import PREFIX, Settings
from tests.deploy.checker_programs import from_wheel
from tests.support.prometheus import program

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"
SERVICES = {"recall", "ingest", "dream", "staleness", "engine"}
USERS = ("INGEST", "DREAM", "STALENESS", "ENGINE")
WORDS = (
    *("POSTGRES_PASSWORD", "SERVICES_PASSWORD", "READER_PASSWORD", "GRAFANA_PASSWORD"),
    *("NATS_PASSWORD", *(f"NATS_{user}_PASSWORD" for user in USERS)),
)
KEYS = ("REVERIE_API_KEY", "REVERIE_VAULT_KEY")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", **dict.fromkeys((*WORDS, *KEYS), "a-word")}


def run(*command: object, **more: Any) -> str:
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@cache
def composed() -> dict[str, Any]:
    """The compose file as compose understands it, all profiles on."""
    flags = ("-f", ROOT / "docker-compose.yml", "--project-directory", ROOT)
    asked = ("--profile", "telemetry", "--profile", "engine", "config", "--format", "json")
    said = run(from_wheel("docker-compose"), *flags, *asked, env=ENVIRONMENT)
    found: dict[str, Any] = json.loads(said)
    return found


def test_the_dockerfile_passes_its_linter_and_has_an_entry_for_each_service() -> None:
    run(from_wheel("hadolint"), DOCKERFILE)
    text = DOCKERFILE.read_text()
    entries = dict(re.findall(r"^FROM reverie AS (\w+)\n.*?^CMD \[(.+?)\]$", text, re.M | re.S))
    assert entries == {name: f'"serve", "{name}"' for name in SERVICES}
    for name in SERVICES:
        assert f"EXPOSE {Settings.model_fields[f'{name}_port'].default}" in text
    assert "USER 10001:10001" in text
    # Of the versions that the rest of the project uses.
    pinned = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    assert pinned
    assert f"uv=={pinned[1]}" in text
    assert text.count("--frozen") == 2


def test_the_image_has_the_backup_programs_of_the_postgres_that_compose_runs() -> None:
    text = DOCKERFILE.read_text()
    version = re.search(r"^ARG POSTGRES=(\d+)$", text, re.M)
    assert version
    assert composed()["services"]["postgres"]["image"].endswith(f"-pg{version[1]}")
    stage = text.split("AS reverie\n")[1].split("\nFROM ")[0]
    assert '"postgresql-client-${POSTGRES}"' in stage
    # An argument before the first FROM is known only to stages that name it again.
    assert stage.startswith("ARG POSTGRES\n")
    assert "/usr/lib/postgresql/${POSTGRES}/bin:$PATH" in stage


def test_the_compose_file_is_complete_and_every_variable_in_it_is_a_setting() -> None:
    services = composed()["services"]
    assert SERVICES | {"postgres", "nats", "migrate"} <= services.keys()
    for name, service in services.items():
        for variable in service.get("environment") or {}:
            if variable.startswith(PREFIX):
                assert variable.removeprefix(PREFIX).lower() in Settings.model_fields, variable
        for volume in service.get("volumes") or []:
            assert volume["type"] != "bind" or Path(volume["source"]).exists(), volume
        for port in service.get("ports") or []:
            assert port["host_ip"] == "127.0.0.1", name
        assert ":" in service["image"], name
    for name in (*SERVICES, "postgres", "nats"):
        assert services[name]["healthcheck"]["test"], name
    for name in SERVICES:
        needs = services[name]["depends_on"]
        assert needs["migrate"]["condition"] == "service_completed_successfully"
        assert services[name]["read_only"] is True
        assert services[name]["command"] == ["serve", name]
        assert "REVERIE_DATABASE_MIGRATION_URL" not in services[name]["environment"]
        # Each as a user of its own on the bus, and recall as none.
        bus = services[name]["environment"].get("REVERIE_NATS_URL", "")
        assert bus.partition("://")[2].partition(":")[0] == ("" if name == "recall" else name)
    assert "reverie_reader" in services["recall"]["environment"]["REVERIE_DATABASE_READONLY_URL"]
    trial = yaml.safe_load((ROOT / "helm/reverie/values.yaml").read_text())["trial"]
    for name in ("postgres", "nats"):
        assert services[name]["image"] == trial[name]["image"], "the same as in the chart"
    telemetry = {name for name, one in services.items() if one.get("profiles") == ["telemetry"]}
    assert telemetry == {"collector", "jaeger", "prometheus", "grafana"}


def test_compose_without_passwords_explains_how_to_create_them(tmp_path: Path) -> None:
    flags = ("-f", ROOT / "docker-compose.yml", "--project-directory", tmp_path, "config", "-q")
    command = [str(one) for one in (from_wheel("docker-compose"), *flags)]
    done = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "run deploy/new-env" in done.stderr


def test_new_passwords_are_readable_by_their_owner_only_and_never_overwritten(
    tmp_path: Path,
) -> None:
    run(Path(sys.executable).with_name("shellcheck"), DEPLOY / "new-env")
    copy = tmp_path / "deploy" / "new-env"
    copy.parent.mkdir()
    copy.write_bytes((DEPLOY / "new-env").read_bytes())
    run("sh", copy)
    made = (tmp_path / ".env").read_text()
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    told = dict(line.split("=", 1) for line in made.splitlines())
    assert told.keys() == {*WORDS, *KEYS}
    assert all(re.fullmatch(r"[\w+/=-]{40,}", word) for word in told.values())
    run("sh", copy)
    assert (tmp_path / ".env").read_text() == made
    # One of a release that knew fewer keeps what it has, and gets what it lacks.
    (tmp_path / ".env").write_text("NATS_PASSWORD=kept\nGRAFANA_PASSWORD=too")
    run("sh", copy)
    later = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    assert later.keys() == told.keys()
    assert (later["NATS_PASSWORD"], later["GRAFANA_PASSWORD"]) == ("kept", "too")


def test_the_configurations_of_nats_are_valid() -> None:
    files = list((DEPLOY / "nats").glob("*.conf"))
    named = re.findall(r"\$(NATS_\w+)", "".join(file.read_text() for file in files))
    told = dict.fromkeys(named, "a-word")
    for file in files:
        run(find_nats_server(), "-c", file, "-t", env=told)


def test_prometheus_accepts_its_configuration_and_scrapes_what_compose_runs(
    tmp_path: Path,
) -> None:
    (tmp_path / "prometheus.yml").symlink_to(DEPLOY / "prometheus" / "prometheus.yml")
    (tmp_path / "alerts").symlink_to(DEPLOY / "alerts")
    run(program("promtool"), "check", "config", "prometheus.yml", cwd=tmp_path)
    config = yaml.safe_load((tmp_path / "prometheus.yml").read_text())
    scraped = {
        found["names"][0]: found["port"]
        for job in config["scrape_configs"]
        for found in job["dns_sd_configs"]
    }
    assert scraped == {n: Settings.model_fields[f"{n}_port"].default for n in SERVICES}


def test_the_collector_and_grafana_address_services_that_compose_runs() -> None:
    collector = yaml.safe_load((DEPLOY / "collector" / "config.yml").read_text())
    for pipeline in collector["service"]["pipelines"].values():
        for part in ("receivers", "processors", "exporters"):
            assert set(pipeline[part]) <= collector[part].keys()
    services = composed()["services"]
    sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/reverie.yml").read_text())
    urls = [one["url"] for one in sources["datasources"]]
    urls += [one["endpoint"] for one in collector["exporters"].values()]
    assert {re.sub(r"https?://(\w+):\d+", r"\1", url) for url in urls} <= services.keys()
    boards = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/reverie.yml").read_text())
    [provider] = boards["providers"]
    mounts = {one["target"] for one in services["grafana"]["volumes"]}
    assert provider["options"]["path"] in mounts
