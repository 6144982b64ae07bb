"""`reverie mirror` keeps a folder in step with a running system, both ways."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.support.commands import command
from tests.support.stack import Stack


class Mirror:
    """The command over one folder and one scope."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.root = folder / "notes"
        own = {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": stack.key}
        self._env = {**os.environ, **own, "REVERIE_HOME": str(folder / "home")}

    async def __call__(self, *words: str) -> tuple[int, list[str]]:
        """The exit code, and what was done."""
        named = ("mirror", str(self.root), "--scope", "project/shop", "--json", *words)
        code, said, _ = await command(self._env, *named)
        return code, [step["action"] for step in json.loads(said)]


async def test_files_and_memories_are_kept_in_step_and_conflicts_on_both_sides(
    stack: Stack, tmp_path: Path
) -> None:
    own = stack.apart()
    mirror = Mirror(own, tmp_path)

    async def shown(id: str) -> dict[str, Any]:
        return dict(await own.get(f"/v1/memories/{id}"))

    body = {"scope": "project/shop", "kind": "decision", "tags": ["money"], "key": "price-unit"}
    prices = (await own.post("/v1/remember", body | {"content": "Prices are cents."}))["id"]
    await own.post("/v1/remember", {"content": "Elsewhere", "scope": "project/other"})
    assert await mirror() == (0, ["written"])
    [file] = mirror.root.rglob("*.md")
    assert file.relative_to(mirror.root).as_posix() == f"project/shop/price-unit-{prices[-8:]}.md"
    assert await mirror() == (0, [])

    text = file.read_text().replace("Prices are cents.", "Prices are whole cents.")
    file.write_text(text.replace('tags: ["money"]', "tags: [money, units]"))
    assert await mirror() == (0, ["edited"])
    edited = await shown(prices)
    assert (edited["content"], edited["tags"]) == ("Prices are whole cents.", ["money", "units"])
    [newest, *_] = (await own.get(f"/v1/memories/{prices}/history"))["items"]
    assert newest["reason"] == "edited in the mirror"

    token = "ghp_" + "x7Kd92LmQp4RtVwYz3Bn" * 2
    new = mirror.root / "project" / "shop" / "deploys.md"
    new.write_text(f"---\nkind: convention\n---\n\nDeploys use {token} on Thursdays.\n")
    assert await mirror() == (0, ["remembered"])
    [stored] = (await own.get("/v1/memories?kind=convention"))["items"]
    assert token not in stored["content"]
    # What a person wrote into a file stays there; memory does not have it.
    assert await mirror() == (0, [])

    file.write_text(file.read_text().replace("whole cents", "integer cents"))
    change = {"content": "Prices are euros."}
    assert (await own.call("PATCH", f"/v1/memories/{prices}", change)).status == 200
    assert await mirror() == (1, ["conflict"])
    [copy] = mirror.root.rglob("*.conflict.md")
    assert "Prices are euros." in copy.read_text()
    assert (await shown(prices))["content"] == "Prices are euros."
    copy.unlink()
    assert await mirror() == (0, ["edited"])
    assert (await shown(prices))["content"] == "Prices are integer cents."

    await own.call("DELETE", f"/v1/memories/{stored['id']}")
    # The file holds more than memory had: it is not taken away.
    assert await mirror() == (1, ["conflict"])
    assert token in new.read_text()
    new.unlink()
    file.unlink()
    assert await mirror() == (0, ["archived"])
    assert (await shown(prices))["status"] == "archived"
