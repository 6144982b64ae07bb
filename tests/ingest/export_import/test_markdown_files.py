"""Export and import as memory.md files, in archives too, and as an Obsidian vault."""

from __future__ import annotations

import io
import re
import tarfile
from typing import Any

import pytest

from tests.support.import_files import send_import
from tests.support.stack import Stack

PATH = "project/shop/memory.md"


async def _export_files(stack: Stack, form: str) -> tuple[bytes, dict[str, str]]:
    headers = {"Authorization": f"Bearer {stack.key}"}
    async with stack.http.get(f"{stack.url}/v1/export?format={form}", headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        data = await answer.read()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        named = {e.name: archive.extractfile(e) for e in archive}
        return data, {name: file.read().decode() for name, file in named.items() if file}


async def _import(stack: Stack, data: bytes | str, kind: str, query: str = "") -> Any:
    status, body = await send_import(stack, data, query, kind=kind)
    assert status == 200, body
    return body


async def test_editing_a_memory_file_changes_only_the_edited_parts(stack: Stack) -> None:
    body = {"scope": "project/shop", "content": "Prefer TypeScript", "key": "prefer-ts"}
    one = await stack.post("/v1/remember", {**body, "tags": ["typescript"], "kind": "preference"})
    odd = "Odd -->\n<!-- segment: x -->\nend"
    two = await stack.post("/v1/remember", {"scope": "project/shop", "content": odd})
    data, files = await _export_files(stack, "markdown")
    text = files[PATH]
    assert f"id: {one['id'][-8:]}, kind: preference, key: prefer-ts, created: " in text
    assert "keywords: [typescript], priority: 0.8 -->\nPrefer TypeScript\n" in text
    assert "-prefer-ts -->" in text
    same = await _import(stack, data, "application/x-tar", "?strategy=replace")
    assert (same["skipped"], same["updated"], same["created"], same["forgotten"]) == (2, 0, 0, 0)

    edited = text.replace("Prefer TypeScript", "Prefer TypeScript, strictly")
    edited = edited.replace(
        "keywords: [typescript], priority: 0.8", "keywords: [ts], priority: 0.9"
    )
    edited += "\n<!-- segment: new -->\nCheckout retries three times.\n"
    edited += "\n<!-- segment: bad -->\nuse sk-proj-" + "a1B2c3D4e5F6g7H8" * 3 + "\n"
    dry = await _import(stack, edited, "text/markdown", "?dry_run=true")
    made = await _import(stack, edited, "text/markdown", "?scope=project/shop")
    for answer in (dry, made):
        assert (answer["updated"], answer["created"], answer["skipped"]) == (1, 2, 1)
        assert (answer["redactions"], answer["rejected"]) == (1, 0)
    now = await stack.get(f"/v1/memories/{one['id']}")
    assert (now["content"], now["tags"], now["confidence"]) == (
        "Prefer TypeScript, strictly",
        ["ts"],
        0.9,
    )
    assert now["version"] == 2
    again = await _import(stack, edited, "text/markdown")
    assert (again["updated"], again["created"], again["skipped"]) == (0, 0, 4)

    _, files = await _export_files(stack, "markdown")
    parts = files[PATH].split("\n<!-- segment: ")
    less = "\n<!-- segment: ".join(part for part in parts if two["id"][-8:] not in part)
    assert (await _import(stack, less, "text/markdown"))["forgotten"] == 0
    assert (await _import(stack, less, "text/markdown", "?strategy=replace"))["forgotten"] == 1
    back = await _import(stack, files[PATH], "text/markdown")
    assert (back["skipped"], back["created"]) == (4, 0)


async def test_tags_derived_from_an_earlier_text_are_not_taken_as_chosen(stack: Stack) -> None:
    said = "Prices are kept in cents, for floats lost money."
    made = await stack.post("/v1/remember", {"scope": "project/shop", "content": said})
    _, files = await _export_files(stack, "markdown")
    for text in ("All amounts are whole numbers.", "Amounts are whole numbers of the least coin."):
        edited = files[PATH].replace(said, text)
        counts = [(await _import(stack, edited, "text/markdown"))["updated"] for _ in range(3)]
        assert counts == [1, 0, 0]
    now = await stack.get(f"/v1/memories/{made['id']}")
    assert (now["version"], now["tags"]) == (3, [])
    chosen = re.sub(r"keywords: \[.*?\]", "keywords: [money]", edited)
    assert (await _import(stack, chosen, "text/markdown"))["updated"] == 1
    assert (await stack.get(f"/v1/memories/{made['id']}"))["tags"] == ["money"]
    assert (await _import(stack, edited, "text/markdown"))["updated"] == 0


async def test_a_dry_run_of_a_memory_file_predicts_the_refusals(stack: Stack) -> None:
    body = {"scope": "project/shop", "content": "Prefer TypeScript", "key": "prefer-ts"}
    one = await stack.post("/v1/remember", body)
    await stack.post("/v1/remember", {**body, "content": "Tabs, not spaces", "key": "tabs"})
    _, files = await _export_files(stack, "markdown")
    for key, text in (("prefer-ts", "Prefer Rust"), ("new", "Once"), ("new", "Twice")):
        files[PATH] += f"\n<!-- segment: x -->\n<!-- key: {key} -->\n{text}\n"
    files[PATH] += "\n<!-- segment: y -->\n<!-- key: other -->\nPrefer TypeScript\n"
    files[PATH] = files[PATH].replace("key: tabs", "key: prefer-ts")
    dry = await _import(stack, files[PATH], "text/markdown", "?dry_run=true")
    assert len((await _export_files(stack, "markdown"))[1][PATH]) < len(files[PATH])
    made = await _import(stack, files[PATH], "text/markdown")
    names = ("created", "updated", "skipped", "forgotten", "rejected")
    assert {name: dry[name] for name in names} == {name: made[name] for name in names}
    assert [x["line"] for x in dry["rejected_lines"]] == [x["line"] for x in made["rejected_lines"]]
    assert (made["created"], made["skipped"], made["rejected"]) == (2, 1, 3)
    assert one["id"] in dry["rejected_lines"][0]["reason"]


async def test_a_vault_export_has_a_note_for_each_memory_with_links(stack: Stack) -> None:
    body = {"scope": "project/shop", "content": "Sign with RS256", "tags": ["jwt"], "key": "rs256"}
    one = await stack.post("/v1/remember", body)
    edges = [{"to": one["id"], "type": "depends_on"}]
    await stack.post(
        "/v1/remember", {**body, "content": "Keys: a/b?", "key": "x/y", "edges": edges}
    )
    _, files = await _export_files(stack, "obsidian")
    note = f"project/shop/rs256-{one['id'][-8:]}.md"
    assert f'id: "{one["id"]}"' in files[note]
    assert 'tags: ["jwt"]' in files[note]
    [other] = [name for name in files if name.startswith("project/shop/x-y-")]
    assert f"### depends_on\n\n- [[rs256-{one['id'][-8:]}]]" in files[other]
    assert f"- [[rs256-{one['id'][-8:]}|rs256]]" in files["project/shop/project-shop-index.md"]


def _tar(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _entry(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    return info


NAME = "project/shop/memory.md"
TEXT = b"<!-- segment: x -->\nCarts expire after a day.\n"


def _sparse_archive() -> bytes:
    """A header of 512 bytes that says a gigabyte of nothing."""
    header = bytearray(_entry(NAME, tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % 2**30
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


def _pax_sparse_archive() -> bytes:
    info = _entry(NAME)
    info.pax_headers = {"GNU.sparse.size": str(2**30), "GNU.sparse.map": "0,0"}
    return _tar((info, TEXT))


def _lying_archive() -> bytes:
    info = _entry(NAME)
    info.size = 2**30
    return info.tobuf(tarfile.GNU_FORMAT) + TEXT.ljust(512, b"\0") + bytes(1024)


def _negative_archive() -> bytes:
    info = _entry(NAME)
    info.pax_headers = {"size": "-1024"}
    return _tar((info, TEXT))


def _link_archive() -> bytes:
    info = _entry(NAME, tarfile.SYMTYPE)
    info.linkname = "/etc/passwd"
    return _tar((info, b""))


HOSTILE = {
    "sparse": _sparse_archive(),
    "sparse by an extended header": _pax_sparse_archive(),
    "sizes that lie": _lying_archive(),
    "a negative size": _negative_archive(),
    "a link": _link_archive(),
    "a device": _tar((_entry(NAME, tarfile.CHRTYPE), b"")),
    "an extended header without end": _tar((_entry("x", tarfile.XHDTYPE), b"1" * 70_000)),
    "no files": _tar((_entry("readme.txt"), b"x")),
    "nothing": b"",
    "no archive": b"x" * 2000,
    "a scope twice": _tar((_entry(NAME), TEXT), (_entry(NAME), TEXT)),
    "a path that is no scope": _tar((_entry("a/b/c/d/e/f/g/memory.md"), TEXT)),
    "no text": _tar((_entry(NAME), b"\xff\xfe")),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_is_refused_and_nothing_of_it_is_stored(
    stack: Stack, name: str
) -> None:
    sound = _tar((_entry("project/a/memory.md"), b"<!-- segment: x -->\nA sound one.\n"))
    mixed = sound[: sound.index(b"A sound one") + 512 - 20 - 12].ljust(1024, b"\0") + HOSTILE[name]
    for data in (HOSTILE[name], mixed):
        if name in {"no files", "nothing"} and data is mixed:
            continue
        status, body = await send_import(stack, data, kind="application/x-tar")
        assert status in {400, 422}, body
        assert body["detail"]
    listed = await stack.get("/v1/memories?scope=project/a")
    assert listed["items"] == []


async def test_a_file_of_the_tree_is_refused_with_its_name_and_line(stack: Stack) -> None:
    text = b"<!-- segment: x -->\nFine.\n\n<!-- segment: y -->\n<!-- kind: sorcery -->\nBad.\n"
    data = _tar((_entry("project/a/memory.md"), TEXT), (_entry("project/b/memory.md"), text))
    status, body = await send_import(stack, data, kind="application/x-tar")
    assert (status, body["field"]) == (422, "project/b/memory.md, line 4: kind")
    assert (await stack.get("/v1/memories"))["items"] == []
