"""`reverie remember --lines`: each line by its own number, with what was said of all."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from typer.testing import CliRunner

from reverie.cli.common import FAILED
from reverie.cli.main import app
from tests.stack import Stack


async def test_a_line_is_refused_by_its_number_and_all_have_the_files_that_were_named(
    stack: Stack, tmp_path: Path
) -> None:
    odd = json.dumps({"content": "One line\u2028in all."}, ensure_ascii=False)
    lines = ["Pears ripen late.", "", "", '{"content": "Plums", "kind": "fruit"}', odd]
    env = {
        "REVERIE_API_KEY": stack.key,
        "REVERIE_GATEWAY_URL": stack.url,
        "REVERIE_HOME": str(tmp_path),
    }
    words = ["remember", "-", "--lines", "--file", "src/fruit.py", "--scope", "project/orchard"]
    done = await asyncio.to_thread(CliRunner().invoke, app, words, input="\n".join(lines), env=env)
    assert done.exit_code == FAILED, done.exception
    assert "4: invalid: kind" in done.stderr
    found = (await stack.get("/v1/memories", params={"scope": "project/orchard"}))["items"]
    kept = {one["content"]: one["provenance"]["git"]["files"] for one in found}
    files = ["src/fruit.py"]
    assert kept == {"Pears ripen late.": files, "One line\u2028in all.": files}
