"""The files of a mirror: their text, their names, and what a person sees of a pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.agent.mirror.folder import STATE_FILE, MirrorFolder
from reverie.agent.mirror.record import MirrorRecord, parse_record, render_record
from reverie.agent.mirror.sync import MirrorStep, MirrorSync
from reverie.agent.rules.files import parse_sections
from reverie.domain.core.errors import InvalidInput
from tests.agent.test_mirror_interleavings import MemoriesInMemory

words = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=80)
records = st.builds(
    MirrorRecord,
    content=words,
    kind=st.sampled_from(["decision", "bug"]),
    scope=st.sampled_from(["global", "project/shop"]),
    id=st.none() | st.uuids().map(str),
    key=st.none() | words,
    tags=st.lists(words, max_size=3, unique=True).map(lambda tags: tuple(sorted(tags))),
    pinned=st.booleans(),
)


@given(records)
def test_a_record_is_read_back_as_it_was_written(record: MirrorRecord) -> None:
    assert parse_record(render_record(record)) == record
    windows = parse_record(render_record(record).replace("\n", "\r\n"))
    assert windows is not None
    assert windows.fingerprint == record.fingerprint


def test_lines_of_the_front_matter_that_mean_nothing_here_stay() -> None:
    text = "---\nkind: bug\nowner: ann\n# a note\n---\n\nIt fails.\n"
    record = parse_record(text)
    assert record == MirrorRecord("It fails.", "bug", extra=("owner: ann", "# a note"))
    assert render_record(record) == text


def test_a_file_without_front_matter_is_no_memory() -> None:
    assert parse_record("# Notes\n\nOf the house.\n") is None
    with pytest.raises(ValueError, match="cannot read the line"):
        parse_record('---\nkey: "half\n---\n\nx\n')


def _pass(memories: MemoriesInMemory, root: Path, **more: object) -> list[tuple[str, str]]:
    steps = MirrorSync(memories, MirrorFolder(root), **more).run()  # type: ignore[arg-type]
    return [(step.action, step.path) for step in steps]


def test_what_one_side_writes_the_other_gets(tmp_path: Path) -> None:
    memories = MemoriesInMemory()
    id = memories.put("Prices are kept in cents.")
    path = "project/shop/prices-are-kept-in-cents-00000001.md"
    assert _pass(memories, tmp_path) == [("written", path)]
    assert _pass(memories, tmp_path) == []
    file = tmp_path / path
    file.write_text(file.read_text().replace("in cents", "in whole cents"))
    assert _pass(memories, tmp_path) == [("edited", path)]
    assert memories.active[id]["content"] == "Prices are kept in whole cents."
    memories.change(id, "Prices are kept in euros.")
    # Its name stays, so that a version control shows an edit.
    assert _pass(memories, tmp_path) == [("written", path)]
    assert "in euros." in file.read_text()
    file.unlink()
    assert _pass(memories, tmp_path) == [("archived", path)]
    assert memories.active == {}


@pytest.mark.parametrize("text", ["", "Prices are kept in cents.\n", "\n---\nid: x\n---\n\nx\n"])
def test_a_file_that_is_empty_or_headless_archives_nothing(text: str, tmp_path: Path) -> None:
    memories = MemoriesInMemory()
    id = memories.put("Prices are kept in cents.")
    [(_, path)] = _pass(memories, tmp_path)
    whole = (tmp_path / path).read_text()
    (tmp_path / path).write_text(text)
    assert _pass(memories, tmp_path) == [("rejected", path)]
    assert (tmp_path / path).read_text() == text
    (tmp_path / path).write_text(whole.replace("cents", "whole cents"))
    assert _pass(memories, tmp_path) == [("edited", path)]
    assert memories.active[id]["content"] == "Prices are kept in whole cents."


def test_a_new_file_is_remembered_in_the_scope_of_its_folder(tmp_path: Path) -> None:
    memories = MemoriesInMemory()
    file = tmp_path / "project" / "shop" / "deploys.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nkind: decision\nauthor: ann\n---\n\nWe deploy on Thursdays.\n")
    (tmp_path / "README.md").write_text("Of the folder.\n")
    assert _pass(memories, tmp_path) == [("remembered", "project/shop/deploys.md")]
    [memory] = memories.active.values()
    assert (memory["scope"], memory["content"]) == ("project/shop", "We deploy on Thursdays.")
    assert (
        f"id: {memory['id']}\n" in file.read_text() or f'id: "{memory["id"]}"' in file.read_text()
    )
    assert "author: ann" in file.read_text()
    assert _pass(memories, tmp_path) == []


def test_a_conflict_shows_both_texts_and_ends_as_the_person_says(tmp_path: Path) -> None:
    memories = MemoriesInMemory()
    id = memories.put("The limit is 10.")
    _pass(memories, tmp_path)
    [file] = tmp_path.rglob("*.md")
    file.write_text(file.read_text().replace("10", "20"))
    memories.change(id, "The limit is 30.")
    [(action, _)] = _pass(memories, tmp_path)
    [copy] = tmp_path.rglob("*.conflict.md")
    assert (action, "is 20." in file.read_text(), "is 30." in copy.read_text()) == (
        "conflict",
        True,
        True,
    )
    assert [action for action, _ in _pass(memories, tmp_path)] == ["conflict"]
    assert memories.active[id]["content"] == "The limit is 30."
    file.write_text(file.read_text().replace("20", "25"))
    copy.unlink()
    assert [action for action, _ in _pass(memories, tmp_path)] == ["edited"]
    assert memories.active[id]["content"] == "The limit is 25."


@pytest.mark.parametrize("prefer", ["file", "memory"])
def test_a_preferred_side_wins_and_the_other_text_is_kept(prefer: str, tmp_path: Path) -> None:
    memories = MemoriesInMemory()
    id = memories.put("The limit is 10.")
    _pass(memories, tmp_path)
    [file] = tmp_path.rglob("*.md")
    file.write_text(file.read_text().replace("10", "20"))
    memories.change(id, "The limit is 30.")
    _pass(memories, tmp_path, prefer=prefer)
    won = "The limit is 20." if prefer == "file" else "The limit is 30."
    assert memories.active[id]["content"] == won
    assert won in file.read_text()
    texts = {path.read_text() for path in tmp_path.rglob("*.md")}
    assert any("is 20." in text for text in texts)
    assert "The limit is 30." in memories.texts


def test_a_folder_that_lost_its_files_or_another_gateway_is_refused(tmp_path: Path) -> None:
    memories = MemoriesInMemory()
    for number in range(30):
        memories.put(f"Fact number {number}")
    _pass(memories, tmp_path)
    with pytest.raises(InvalidInput, match="right key and gateway"):
        _pass(MemoriesInMemory(), tmp_path)
    for file in tmp_path.rglob("*.md"):
        file.unlink()
    with pytest.raises(InvalidInput, match="30 of 30 files are gone"):
        _pass(memories, tmp_path)
    assert len(memories.active) == 30
    assert len(_pass(memories, tmp_path, removals=True)) == 30


@pytest.mark.parametrize("name", ["path", "copy"])
@pytest.mark.parametrize("place", ["../out.md", "project/../../out.md", "{parent}/out.md"])
def test_a_state_file_that_leads_out_of_the_folder_is_refused(
    name: str, place: str, tmp_path: Path
) -> None:
    memories, root = MemoriesInMemory(), tmp_path / "mirror"
    id = memories.put("Prices are kept in cents.")
    root.mkdir()
    entry = {"path": "a.md", name: place.format(parent=tmp_path)}
    (root / STATE_FILE).write_text(json.dumps({id: entry}))
    with pytest.raises(InvalidInput, match="leads out"):
        _pass(memories, root)
    assert not (tmp_path / "out.md").exists()


def test_a_folder_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    memories, root, outside = MemoriesInMemory(), tmp_path / "mirror", tmp_path / "outside"
    memories.put("Prices are kept in cents.")
    root.mkdir()
    outside.mkdir()
    (root / "project").symlink_to(outside)
    with pytest.raises(InvalidInput, match="through a link"):
        _pass(memories, root)
    assert list(outside.iterdir()) == []


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    memories = MemoriesInMemory()
    memories.put("Prices are kept in cents.")
    run = MirrorSync(memories, MirrorFolder(tmp_path), dry_run=True)
    assert [step.action for step in run.run()] == ["written"]
    assert list(tmp_path.rglob("*.md")) == []
    assert MirrorStep("written", "a") == MirrorStep("written", "a", "")


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md"])
def test_decisions_in_rule_files_become_decisions_and_rules_stay_rules(name: str) -> None:
    text = (
        "# Shop\n\nUse tabs.\n\n## Architecture decisions\n\n- NATS, for its backpressure.\n\n"
        "## Storage\n\n- We chose Postgres over MySQL because of its types.\n"
        "- We decided against a cache.\n\n## Style\n\n- Keep functions short.\n"
        "- We decided on black once; run it always.\n- Never log secrets.\n"
    )
    sections, _ = parse_sections(name, text)
    assert {section.heading.split(" > ")[-1]: section.kind for section in sections} == {
        "Shop": "convention",
        "Architecture decisions": "decision",
        "Storage": "decision",
        "Style": "convention",
    }
