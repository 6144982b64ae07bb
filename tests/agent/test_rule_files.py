"""Agent rule files: their sections, imports, and the block that Reverie writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.agent.clone_paths import resolve_inside
from reverie.agent.rules.block import (
    BEGIN_MARK,
    END_MARK,
    RuleItem,
    hash_text,
    normalize_text,
    parse_block,
    replace_block,
    split_block,
)
from reverie.agent.rules.files import parse_sections, scan_rule_files
from reverie.agent.setup.agents import AGENTS, SetupTarget
from reverie.agent.setup.changes import apply_setup, plan_setup
from reverie.domain.core.errors import InvalidInput
from tests.support.real_history import DATA

GUIDE = """\
---
description: How we build
globs: "*.py"
---
Prices are kept in cents.

# Build

See @docs/more.md and `@not/this.md`.

## Commands

```sh
# not a heading
make test
```

## Commands

Run `make lint`.
"""

pieces = st.lists(
    st.sampled_from(["# A", "- item", "```", "", "<!-- x -->", "a", "  in", "\ufeff", "\u2028"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    max_size=8,
)  # fmt: skip
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | pieces.map("\n".join)
ids = st.uuids().map(str)


def _whole(text: str) -> bool:
    return bool(normalize_text(text)) and BEGIN_MARK not in text and END_MARK not in text


@given(
    outside=pieces,
    items=st.dictionaries(ids, texts.filter(_whole), max_size=4),
    out=st.frozensets(ids, max_size=2),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    behind=texts.filter(lambda text: BEGIN_MARK not in text and END_MARK not in text),
)
def test_a_rules_file_round_trips_and_no_other_byte_changes(
    outside: list[str],
    items: dict[str, str],
    out: frozenset[str],
    end: str,
    last: bool,
    behind: str,
) -> None:
    text = end.join(outside) + (end if last else "")
    given_items = [RuleItem(normalize_text(text), id) for id, text in items.items()]
    written = replace_block("a.md", text, given_items, out)
    assert written.startswith(text)
    if not items:
        assert written == text
        return
    written += behind
    before, block, after = split_block("a.md", written)
    assert (before.startswith(text), after) == (True, behind)
    found = parse_block(block or "")
    assert [(one.id, one.text) for one in found.items] == [
        (k, normalize_text(v)) for k, v in items.items()
    ]
    assert not any(one.is_edited for one in found.items)
    assert found.known_ids == frozenset(items) | out
    assert replace_block("a.md", written, found.items, out - frozenset(items)) == written
    assert parse_sections("a.md", text)[0] == parse_sections("a.md", before)[0]


def test_entries_can_be_edited_added_and_removed_within_the_block() -> None:
    one, two, three = (f"0197abcd-0000-7000-8000-00000000000{n}" for n in (1, 2, 3))
    items = [
        RuleItem("Sign with RS256", one),
        RuleItem("Cents\n\n    code", two),
        RuleItem("Old", three),
    ]
    text = replace_block("a.md", "# Mine\n", items, frozenset())
    text = text.replace("RS256", "ES256").replace("- Old\n", "- New one\n  of two lines\n")
    text = text.replace(f"<!-- reverie:item {three} {hash_text('Old')} -->\n", "")
    block = parse_block(split_block("a.md", text)[1] or "")
    assert [(item.id, item.text) for item in block.items] == [
        (one, "Sign with ES256"),
        (two, "Cents\n\n    code"),
        (None, "New one\nof two lines"),
    ]
    assert [item.is_edited for item in block.items] == [True, False, True]
    assert block.removed_ids == {three}


@pytest.mark.parametrize(
    "text",
    [
        f"a\n{BEGIN_MARK} -->\n",
        f"{END_MARK} -->\n",
        f"{END_MARK} -->\n{BEGIN_MARK} -->\n",
        f"{BEGIN_MARK} -->\n" * 2,
    ],
)
def test_a_broken_block_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(InvalidInput, match="do not pair"):
        replace_block("a.md", text, [RuleItem("x")], frozenset())


def test_sections_have_stable_keys_kinds_and_sources() -> None:
    sections, imports = parse_sections(".cursor/rules/build.mdc", GUIDE)
    assert imports == ["docs/more.md"]
    assert [(one.heading, one.kind, one.tags[1:]) for one in sections] == [
        ("", "convention", ()),
        ("Build", "convention", ("command",)),
        ("Build > Commands", "convention", ("command",)),
        ("Build > Commands", "convention", ("command",)),
    ]
    assert sections[0].content == "How we build: For files *.py\n\nPrices are kept in cents."
    assert "# not a heading\nmake test" in sections[2].content
    assert len({one.key for one in sections}) == 4
    edited, _ = parse_sections(".cursor/rules/build.mdc", GUIDE.replace("make test", "make check"))
    assert [one.key for one in edited] == [one.key for one in sections]
    token = "ghp_" + "x7Kd92LmQp4RtVwYz3Bn" * 2
    assert token not in parse_sections("CLAUDE.md", f"Use {token}")[0][0].content


def test_imports_are_followed_within_the_project_and_symlinks_are_refused(tmp_path: Path) -> None:
    root, other = tmp_path / "shop", tmp_path / "other"
    (root / "web" / "app" / "deep").mkdir(parents=True)
    (root / "node_modules").mkdir()
    other.mkdir()
    (other / "secret.md").write_text("Not ours")
    (root / "CLAUDE.md").write_text("@docs.md\n@../other/secret.md\n@link.md\n@CLAUDE.md\nRule one")
    (root / "docs.md").write_text("More rules")
    (root / "link.md").symlink_to(other / "secret.md")
    (root / "AGENTS.md").symlink_to(root / "CLAUDE.md")
    (root / "node_modules" / "AGENTS.md").write_text("Theirs")
    (root / "web" / "app" / "deep" / "AGENTS.md").write_text("Use hooks")
    (root / "GEMINI.md").write_bytes(b"\xff\xfe")
    found = scan_rule_files(root)
    assert found.files == ["CLAUDE.md", "docs.md", "web/app/deep/AGENTS.md"]
    assert len(found.unreadable) == 4
    assert found.sections[-1].content == "In web/app/deep/\n\nUse hooks"
    assert found.sections[-1].topic == ("web", "app")
    for bad in ("../other/secret.md", "link.md", "."):
        with pytest.raises(InvalidInput):
            resolve_inside(root, Path(bad))


@pytest.mark.skipif(not DATA.exists(), reason="the real files are not here")
def test_real_rule_files_lose_nothing() -> None:
    for path in sorted((DATA / "instructions").glob("*.md")):
        text = path.read_text()
        sections, _ = parse_sections(path.name, text)
        assert len(sections) > 3
        kept = "\n".join(one.content for one in sections)
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        assert [line for line in lines if line.strip() not in kept] == []
        assert {"convention"} < {one.kind for one in sections} or any(
            "command" in one.tags for one in sections
        )


def test_text_written_by_the_setup_is_no_rule_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# Style\n\nUse tabs.\n")
    place = SetupTarget(tmp_path / "home", tmp_path, "shop", is_user_wide=False)
    for agent in AGENTS:
        apply_setup(agent, place, plan_setup(agent, place), tmp_path / "kept")
    found = scan_rule_files(tmp_path)
    assert {"AGENTS.md", ".cursor/rules/reverie.mdc"} <= set(found.files)
    assert [(one.heading, one.content) for one in found.sections] == [
        ("Style", "Style\n\nUse tabs.")
    ]


def test_a_linked_folder_of_rules_is_not_searched(tmp_path: Path) -> None:
    mine, shop = tmp_path / "mine", tmp_path / "shop"
    for folder in (mine / "rules", shop / "web/.cursor"):
        folder.mkdir(parents=True)
    (mine / "rules" / "private.mdc").write_text("# Mine\n\nA rule.")
    (shop / ".cursor").symlink_to(mine)
    (shop / "web/.cursor/rules").symlink_to(mine / "rules")
    scan = scan_rule_files(shop)
    assert (scan.files, scan.sections, scan.unreadable) == ([], [], [])
