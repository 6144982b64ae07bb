"""Status and doctor tell the own instance from another one, and a valid key from a wrong one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from reverie.cli.operate.component_status import check_components
from reverie.cli.operate.doctor.findings import Finding
from reverie.cli.operate.doctor.machine_checks import check_ports
from reverie.cli.operate.doctor.service_checks import check_key
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from tests.runtime.sample_service import Sample
from tests.support.commands import command
from tests.support.stack import Stack


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
        findings = await asyncio.to_thread(lambda: list(check_ports(settings, None)))
        assert not [one for one in findings if "(ingest_port) is taken" in one.message]


def _check_key(settings: Settings) -> list[Finding]:
    return list(check_key(settings, None))


async def test_the_doctor_reports_a_key_that_the_gateway_refuses(stack: Stack) -> None:
    for key, level in ((stack.key, "ok"), ("rv_wrong", "error")):
        settings = Settings(gateway_url=stack.url, api_key=key)
        [finding] = await asyncio.to_thread(_check_key, settings)
        assert finding.level == level
    assert "refuses the key" in finding.message
