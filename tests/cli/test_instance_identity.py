"""Status and doctor tell the own instance from another one, and a valid key from a wrong one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reverie.cli.operate.component_status import check_components
from reverie.cli.operate.doctor import service_checks
from reverie.cli.operate.doctor.findings import Finding
from reverie.cli.operate.doctor.machine_checks import check_ports
from reverie.cli.operate.doctor.service_checks import (
    check_backlog,
    check_database,
    check_key,
    check_services,
)
from reverie.embedded.home import Home, open_home, write_run_file
from reverie.embedded.lock import hold_home_lock
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from tests.runtime.sample_service import Sample
from tests.support.commands import command
from tests.support.stack import Stack

Check = Callable[[Settings, Home | None], Iterable[Finding]]


async def test_services_of_another_home_folder_are_not_called_ready(tmp_path: Path) -> None:
    running, stopped = tmp_path / "running", tmp_path / "stopped"
    async with start_service(Sample().service(), Settings(home=running)) as url:
        port = urlsplit(url).port
        for home, is_own in ((running, True), (stopped, False)):
            settings = Settings(home=home, ingest_port=port)
            system = await asyncio.to_thread(check_components, settings)
            [ingest] = [one for one in system.components if one.name == "ingest"]
            assert (ingest.ok, system.running) == (is_own, is_own)
            assert ("another home folder" in ingest.problem) is not is_own
            assert bool(await asyncio.to_thread(_run, check_backlog, settings)) is is_own
        env = {"REVERIE_INGEST_PORT": str(port), "REVERIE_HOME": str(stopped)}
        code, out, _ = await command(env, "status", "--json")
        assert (code, '"running": true' in out) == (3, False)


async def test_services_on_servers_of_ones_own_may_have_any_home_folder(tmp_path: Path) -> None:
    async with start_service(Sample().service(), Settings(home=tmp_path / "service")) as url:
        external = {"database_url": "postgresql://nobody@127.0.0.1:1/reverie"}
        ports = {"ingest_port": urlsplit(url).port, "recall_port": 0}
        settings = Settings.model_validate({"home": tmp_path / "operator", **external, **ports})
        system = await asyncio.to_thread(check_components, settings)
        [ingest] = [one for one in system.components if one.name == "ingest"]
        assert ingest.ok
        findings = await asyncio.to_thread(_run, check_ports, settings)
        assert not [one for one in findings if "(ingest_port) is taken" in one.message]


def test_the_doctor_names_the_log_of_an_embedded_server_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home(tmp_path)
    closed = "postgresql://nobody@127.0.0.1:1/reverie"
    monkeypatch.setattr(service_checks, "resolve_database_url", lambda _: closed)
    [embedded] = check_database(Settings(home=tmp_path), home)
    assert embedded.remedy.endswith("/postgres.log")
    configured = Settings.model_validate({"home": tmp_path, "database_url": closed})
    [external] = check_database(configured, home)
    assert "REVERIE_DATABASE_URL" in external.remedy


def test_the_doctor_names_the_log_of_the_process_that_a_service_runs_in(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    closed = dict.fromkeys(("recall", "ingest", "dream-worker"), "http://127.0.0.1:1")
    with hold_home_lock(home):
        write_run_file(home, "up", {"services": closed})
        findings = {
            one.message.split(" at ")[0]: one.remedy
            for one in check_services(Settings(home=tmp_path), home)
        }
    for name, log in (("recall", "all"), ("ingest", "all"), ("dream-worker", "derive")):
        assert findings[name].endswith(f"/{log}.log")


async def _answer_unavailable(request: web.Request) -> web.Response:
    problem = {"code": "unavailable", "status": 503, "detail": "Postgres does not answer"}
    return web.json_response(problem, status=503)


async def test_a_gateway_without_its_database_is_not_said_to_refuse_the_key() -> None:
    app = web.Application()
    app.router.add_get("/v1/memories", _answer_unavailable)
    async with TestServer(app) as server:
        settings = Settings(gateway_url=str(server.make_url("/")), api_key="rv_right")
        [finding] = await asyncio.to_thread(_run, check_key, settings)
    assert finding.level == "error"
    assert "Postgres does not answer" in finding.message
    assert "refuses" not in finding.message
    assert "REVERIE_API_KEY" not in finding.remedy


def _run(check: Check, settings: Settings) -> list[Finding]:
    return list(check(settings, None))


async def test_the_doctor_reports_a_key_that_the_gateway_refuses(stack: Stack) -> None:
    for key, level in ((stack.key, "ok"), ("rv_wrong", "error")):
        settings = Settings(gateway_url=stack.url, api_key=key)
        [finding] = await asyncio.to_thread(_run, check_key, settings)
        assert finding.level == level
    assert "refuses the key" in finding.message
