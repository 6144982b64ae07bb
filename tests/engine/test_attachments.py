"""What goes with a message, by every door, and how an image is fetched again."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.errors import InvalidInput
from reverie.domain.formats.attachments import Attachments, split_message
from reverie.testing.chat_server import ChatAnswer, ToolUse
from tests.console.sample_tenant import PNG
from tests.engine.conftest import Engine, command_environment
from tests.support.commands import command

JPEG = b"\xff\xd8\xff and so on"


def test_files_are_told_apart_by_their_bytes() -> None:
    given = Attachments()
    for name, data in [("C:\\a.png", b"# a text"), ("b.txt", JPEG), ("a.png", b"\xef\xbb\xbfb")]:
        given.add(name, data)
    assert given.files == {"a.png": "# a text", "a.png (2)": "b"}
    assert given.images == [("image/jpeg", JPEG)]
    for data in (b"%PDF-1.7 \xe2\xe3\xcf\xd3", b"t\0e\0x\0t\0"):
        with pytest.raises(InvalidInput, match="is no text in UTF-8, and is no PNG"):
            given.add("c.pdf", data)


def test_a_message_is_taken_apart_as_it_was_put_together() -> None:
    content = "Look.\n\nHere.\n\n[file a.py]\nx = 1\n\ny = 2\n\n[image: image/png, A red square.]"
    parts = split_message(content + "\n\n[image: image/gif]")
    assert parts.text == "Look.\n\nHere."
    assert parts.files == [("a.py", "x = 1\n\ny = 2")]
    assert parts.images == ["A red square.", ""]


async def _image_path(engine: Engine, group: str) -> str:
    [image] = (await engine.log(group))["items"][0]["images"]
    return f"/v1/groups/{group}/images/{image}"


async def test_an_image_is_fetched_as_json_or_file_by_who_may_read_its_message(
    engine: Engine,
) -> None:
    engine.play([ChatAnswer("A square.")])
    group = await engine.group("beck")
    image = {"media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    await engine.say(group, "What is this?", images=[image])
    path = await _image_path(engine, group)
    body = await engine.stack.get(engine.service.gateway + path)
    assert (body["media_type"], body["size"]) == ("image/png", len(PNG))
    assert base64.b64decode(body["data"]) == PNG
    headers = {"Authorization": f"Bearer {engine.stack.key}", "Accept": "image/*"}
    async with engine.stack.http.get(engine.service.gateway + path, headers=headers) as reply:
        assert await reply.read() == PNG
        sent = reply.headers
    assert sent["Content-Type"] == "image/png"
    assert sent["X-Content-Type-Options"] == "nosniff"
    assert sent["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert sent["Content-Disposition"] == f'attachment; filename="{path[-12:]}.png"'
    headers["If-None-Match"] = sent["ETag"]
    async with engine.stack.http.get(engine.service.gateway + path, headers=headers) as reply:
        assert (reply.status, await reply.read()) == (304, b"")
    other = await engine.group("beck")
    elsewhere = engine.stack.key_of(role=KeyRole.READER, reads=["project/elsewhere"], writes=[])
    for key in (engine.stack.apart().key, elsewhere):
        assert (await engine.call("GET", path, key=key)).status == 404
    moved = f"/v1/groups/{other}/images/{path.rpartition('/')[2]}"
    assert (await engine.call("GET", moved)).status == 404
    odd = await engine.call("GET", f"/v1/groups/{other}/images/none")
    assert (odd.status, odd.body["code"]) == (422, "invalid")


async def test_a_message_with_what_is_no_image_or_no_name_of_a_file_is_refused(
    engine: Engine,
) -> None:
    group = await engine.group("beck")
    path = f"/v1/groups/{group}/messages"
    for data, reason in (
        (b"<script>", "is no PNG, JPEG, GIF or WebP image"),
        (JPEG, "is image/jpeg by its bytes"),
    ):
        image = {"media_type": "image/png", "data": base64.b64encode(data).decode()}
        reply = await engine.call("POST", path, {"text": "See.", "images": [image]})
        assert reply.status == 422
        assert reason in json.dumps(reply.body)
    for name in ("", "a\n[image: a cat].txt", "x" * 201, "a\u2028b"):
        refused = await engine.call("POST", path, {"text": "Read it.", "files": {name: "text"}})
        assert (refused.status, refused.body["code"]) == (422, "invalid"), name
    assert (await engine.log(group))["items"] == []


async def test_the_command_attaches_and_fetches(engine: Engine, tmp_path: Path) -> None:
    engine.play([ChatAnswer("I see."), ChatAnswer("A square.")])
    env = command_environment(engine, tmp_path)
    group = await engine.group("beck")
    shot, note, other = (tmp_path / name for name in ("shot.png", "note.md", "app.bin"))
    shot.write_bytes(PNG)
    note.write_text("the colour is green")
    other.write_bytes(b"\xff\x00")
    words = ("groups", "say", group, "See both.", "--attach", str(shot), "--attach", str(note))
    code, _, err = await command(env, *words)
    assert code == 0, err
    await engine.turn(group, "beck", "done")
    assert "the colour is green" in engine.requests[0].body_text
    image = (await _image_path(engine, group)).rpartition("/")[2]
    code, listed, _ = await command(env, "groups", "messages", group)
    assert f"  image {image}" in listed.splitlines()
    out = tmp_path / "again.png"
    code, _, err = await command(env, "groups", "image", group, image, "--out", str(out))
    assert (code, out.read_bytes()) == (0, PNG), err
    code, _, err = await command(env, "groups", "say", group, "See.", "--attach", str(other))
    assert code == 2
    assert "app.bin is no text in UTF-8" in err


async def test_a_call_that_waits_is_decided_by_what_commands_print(
    engine: Engine, tmp_path: Path
) -> None:
    call = ToolUse("write_file", {"path": "from-command.txt", "content": "x"})
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer("Written.")])
    env = command_environment(engine, tmp_path)
    group = await engine.group("beck")
    posted = await engine.post(group, "Write it.")
    await engine.turn(group, "beck", "waiting")
    _, listed, _ = await command(env, "groups", "messages", group)
    words = listed.splitlines()[-1].replace(":", "").split()
    assert (words[0], words[2:7]) == ("turn", ["of", "beck", "waits", "to", "call"])
    code, _, err = await command(env, "groups", "approve", group, words[1], words[-1])
    assert code == 0, err
    await engine.ended(group, posted)
    watched = ("groups", "watch", group, "--after", str(posted["after"]), "--limit", "4")
    _, seen, _ = await command(env, *watched)
    assert any("tool_call  write_file" in line for line in seen.splitlines()), seen
