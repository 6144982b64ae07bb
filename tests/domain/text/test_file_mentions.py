"""File paths and names found in texts, and condensed tool calls."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.entities.file_paths import extract_paths, extract_tool_files, is_same_file
from reverie.domain.text.turns import TurnText, condense_tool_output, tool_call_status


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Look at src/auth.ts and ./lib/b.py.", ["src/auth.ts", "lib/b.py"]),
        ("`pkg/cloud/sync.go:1040-1075` is it", ["pkg/cloud/sync.go"]),
        ("see main.go:928, main.go:617", ["main.go"]),
        ("[docs](docs/POSTHOG.md#L10)", ["docs/POSTHOG.md"]),
        ("diff --git a/x/main.go b/x/main.go", ["x/main.go"]),
        ("--- a/cmd/run.go\n+++ b/cmd/run.go", ["cmd/run.go"]),
        ("/Users/ann/Source/team/repo/pkg/utils/path.go", ["pkg/utils/path.go"]),
        ("/home/ann/repo/main.go", ["repo/main.go"]),
        (r"C:\work\repo\src\a.ts", ["src/a.ts"]),
        ("修改了src/auth.ts文件，以及`配置/`", ["src/auth.ts"]),
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"]),
        (
            ".github/workflows/ci.yml and .golangci.yml",
            [".github/workflows/ci.yml", ".golangci.yml"],
        ),
        ("the Makefile and go.mod", ["Makefile", "go.mod"]),
        ("`go test ./...`, and/or I/O at 24/7, v1.25.6, 1.2.3", []),
        ("https://example.com/a/b.md and bob@example.com", []),
        ("**/*.md, $HOME/a.sh, {name}.go, any .go file", []),
        ("Node.js, Next.js, e.g. this, i.e. that", []),
        ("/tmp/x.txt /etc/hosts.conf ~/.claude/plans/p.md", []),
        ("log.Println(err) and foo.bar()", []),
    ],
)
def test_paths_are_found_and_nothing_else(text: str, found: list[str]) -> None:
    assert extract_paths(text) == found


def test_a_known_root_is_stripped() -> None:
    text = "/Users/ann/repo/deep/main.go"
    assert extract_paths(text, roots=["/Users/ann/repo"]) == ["deep/main.go"]


@pytest.mark.parametrize(
    ("anchor", "changed", "same"),
    [
        ("src/a.ts", "src/a.ts", True),
        ("./src/a.ts", "src/a.ts", True),
        ("pkg/cloud/sync.go", "cli/pkg/cloud/sync.go", True),
        ("repo/cli/pkg/sync.go", "cli/pkg/sync.go", True),
        ("markdown_tools.go", "cli/pkg/markdown_tools.go", True),
        ("main.go", "cli/main.go", False),
        ("index.ts", "src/index.ts", False),
        ("oud/sync.go", "cli/cloud/sync.go", False),
        ("src/b.ts", "src/a.ts", False),
        ("", "src/a.ts", False),
    ],
)
def test_the_same_file_is_recognized_by_its_path_suffix(
    anchor: str, changed: str, same: bool
) -> None:
    assert is_same_file(anchor, changed) is same


def trace(tool: str, content: str) -> TurnText:
    return TurnText(
        UUID(int=1), 0, "tool", condense_tool_output(tool, content), datetime.now(UTC), tool
    )


def test_a_tool_note_names_tool_command_note_and_status_without_long_output() -> None:
    content = "Run tests\n\n`go test ./...`\n\n```text\n" + "ok  pkg 1s\n" * 500 + "```"
    line, _, excerpt = condense_tool_output("Bash", content, limit=50).partition("\n")
    assert line == "Bash: `go test ./...` (Run tests) [ok]"
    assert 0 < len(excerpt) <= 50


def test_a_failed_command_keeps_its_reason() -> None:
    content = (
        "`go test ./...`\n\n```text\nok a\nok b\nok c\n--- FAIL: TestX\n  x.go:3: bad\nok d\n```"
    )
    kept = condense_tool_output("Bash", content)
    assert tool_call_status(kept) == "failed"
    assert "TestX" in kept
    assert "x.go:3: bad" in kept
    assert "ok a" not in kept


def test_a_file_read_or_write_is_reduced_to_its_path() -> None:
    read = trace("Read", " `./go.mod`\n\n```text\nmodule x see other.go\n```")
    edit = trace(
        "Edit", "```text\nThe file /Users/a/repo/pkg/x.go has been updated successfully.\n```"
    )
    assert "module" not in read.content
    assert extract_tool_files(read) == ["go.mod"]
    assert extract_tool_files(edit) == ["pkg/x.go"]


def test_the_users_answers_and_refusals_are_kept() -> None:
    asked = condense_tool_output("Ask", "**Which port?**\n\nOptions:\n- a\n\n**Answer:** 8080")
    refused = condense_tool_output(
        "Plan",
        "```text\nThe user doesn't want to proceed.\nthe user said:\nNo colon after at?\n```",
    )
    assert asked == "Ask: [answered]\nWhich port? → 8080"
    assert refused == "Plan: [rejected]\nNo colon after at?"


def test_a_json_call_is_parsed_by_its_fields() -> None:
    assert condense_tool_output("Bash", '{"command": "make test", "description": "all"}') == (
        "Bash: `make test` (all) [ok]"
    )


@given(st.text(max_size=400), st.integers(0, 100))
def test_no_output_is_kept_whole_and_condensing_is_idempotent(content: str, limit: int) -> None:
    once = condense_tool_output("Bash", content, limit)
    assert len(once.partition("\n")[2]) <= limit
    assert "\x00" not in once
    assert condense_tool_output("Bash", once, limit) == once


@given(st.text(max_size=200))
def test_any_text_can_be_searched(text: str) -> None:
    assert all(path and not path.startswith("/") for path in extract_paths(text))


def test_a_path_has_at_most_one_kibibyte() -> None:
    longest = "d/" * 510 + "x.py"
    assert len(longest) == 1024
    assert extract_paths(f"see {longest} and a{longest} and b.py") == [longest, "b.py"]
