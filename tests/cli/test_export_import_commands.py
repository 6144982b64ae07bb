"""`reverie export` and `reverie import` through a running gateway."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from reverie.cli.memory.export_import import extract_archive
from reverie.domain.core.errors import InvalidInput
from reverie_services.recall.routes.export import JSONL_HEADER
from tests.support.commands import command
from tests.support.stack import Stack


async def _run(stack: Stack, *words: str) -> tuple[int, str]:
    port = stack.url.rsplit(":", 1)[1]
    env = {"REVERIE_API_KEY": stack.key, "REVERIE_RECALL_PORT": port}
    code, said, _ = await command(env, *words)
    return code, said


async def test_an_export_can_be_imported_again(stack: Stack, tmp_path: Path) -> None:
    body = {"content": "Sign with RS256", "scope": "project/shop"}
    await stack.post("/v1/remember", body)
    home = ("--home", str(tmp_path / "home"))
    lines, tree = tmp_path / "new" / "all.jsonl", tmp_path / "tree"
    assert (await _run(stack, "export", "-o", str(lines), *home))[0] == 0
    assert b"Sign with RS256" in lines.read_bytes()
    code, said = await _run(stack, "export", "-f", "markdown", "-o", str(tree), "--json", *home)
    file = tree / "project" / "shop" / "memory.md"
    assert (code, json.loads(said)["bytes"]) == (0, file.stat().st_size)
    assert file.stat().st_mtime < tree.stat().st_mtime
    file.write_text(file.read_text().replace("RS256", "ES256"))
    code, said = await _run(stack, "import", str(tree), "--json", *home)
    assert (code, json.loads(said)["updated"]) == (0, 1)
    code, said = await _run(stack, "import", str(lines), "--dry-run", *home)
    assert (code, said.splitlines()[0][:10]) == (0, "would be: ")
    assert [file.name for file in lines.parent.iterdir()] == ["all.jsonl"]
    assert (await _run(stack, "export", "-o", str(tree), *home))[0] == 2
    assert (await _run(stack, "import", str(tmp_path / "new"), *home))[0] == 2


async def test_an_import_names_each_unsound_line(stack: Stack, tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(f'{JSONL_HEADER}\n{{"type": "sorcery"}}\n{{"type": "edge"}}\n')
    port = stack.url.rsplit(":", 1)[1]
    env = {"REVERIE_API_KEY": stack.key, "REVERIE_RECALL_PORT": port}
    home = ("--home", str(tmp_path / "home"))
    code, _, told = await command(env, "import", str(file), *home)
    assert code == 2
    words = " ".join(told.split())
    assert "line 2: type: use one of memory" in words
    assert "line 3: id: is required" in words
    assert "nothing was imported" in words


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../outside.md", tarfile.REGTYPE),
        ("/outside.md", tarfile.REGTYPE),
        ("link/outside.md", tarfile.REGTYPE),
        ("a.md", tarfile.SYMTYPE),
        ("a.md", tarfile.LNKTYPE),
        ("a.md", tarfile.FIFOTYPE),
    ],
)
def test_only_plain_files_are_unpacked_and_none_outside_the_folder(
    tmp_path: Path, name: str, kind: bytes
) -> None:
    packed, inside = io.BytesIO(), tmp_path / "tree"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, "../outside.md"
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(entry, io.BytesIO())
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive, pytest.raises(InvalidInput, match=entry.name):
        extract_archive(archive, inside)
    assert [path.name for path in tmp_path.rglob("*") if not path.is_symlink()] == ["tree"]
