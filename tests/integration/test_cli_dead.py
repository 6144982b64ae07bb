"""`reverie dead` on a real bus."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from typer.testing import CliRunner

from reverie.bus.connection import connect
from reverie.bus.dead import Origin, bury
from reverie.bus.port import Message
from reverie.bus.streams import ensure_streams
from reverie.cli.main import app


async def test_a_dead_letter_is_listed_with_its_reason_and_replayed(nats_url: str) -> None:
    await ensure_streams(nats_url)
    async with connect(nats_url, "test") as bus:
        assert await bus.wait_connected(5)
        message = Message("memory.default.remembered", b'{"v": 1}', {}, 8)
        await bury(bus, Origin("MEMORY", "ingest-enrich", "7"), message, "no such thing")
    there = ["--set", f"nats_url={nats_url}"]
    listed = _run("dead", "list", "--json", *there)
    [letter] = json.loads(listed)
    assert letter["subject"] == "memory.default.remembered"
    assert (letter["reason"], letter["deliveries"]) == ("no such thing", 8)
    assert "no such thing" in _run("dead", "list", *there)
    assert json.loads(_run("dead", "replay", str(letter["seq"]), "--json", *there)) == {
        "replayed": 1
    }
    assert _run("dead", "list", *there).strip() == "No dead letters."


def _run(*args: str) -> str:
    """The standard output of a command that must succeed, run in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(CliRunner().invoke, app, list(args)).result()
    assert result.exit_code == 0, result.output
    return result.stdout
