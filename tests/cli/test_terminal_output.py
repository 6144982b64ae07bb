"""No text from elsewhere controls the user's terminal, whichever way it is printed."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from rich.live import Live
from rich.table import Table

import reverie.cli
from reverie.agent.hooks.command import main as run_hook
from reverie.cli.app import output
from reverie.cli.app.errors import print_error_line
from reverie.cli.app.terminal import SafeConsole
from reverie.domain.text.control_characters import strip_control_characters
from reverie.runtime.observability.logs import configure_logs
from reverie.runtime.settings.settings import Settings
from tests.support.commands import command
from tests.support.stack import Stack

FORBIDDEN = frozenset(
    map(
        chr,
        [
            *(code for code in range(32) if code not in (9, 10)),
            *range(0x7F, 0xA0),
            *range(0x202A, 0x202F),
            *range(0x2066, 0x206A),
        ],
    )
)
HOSTILE = f"a\x1b]52;c;cHduZWQ=\x07b\x1b[2J\x9b1A\u202egpj{''.join(sorted(FORBIDDEN))}c"
SEAMS = {"output.py", "terminal.py", "commands.py", "main.py"}
"""The modules of `cli/app` that print by themselves; the last two print fixed texts."""


def ask(text: str) -> None:
    with pytest.raises(click.Abort):
        output.confirm(text)


@pytest.mark.parametrize(
    "show",
    [
        output.print_plain,
        output.print_json,
        lambda text: output.print_warnings([text]),
        lambda text: output.print_plain(output.build_table([{"name": text}], {"name": "name"})),
        lambda text: print_error_line("failed", text, False),
        lambda text: print_error_line("failed", text, True),
        lambda text: run_hook([text]),
        ask,
    ],
    ids=["plain", "json", "warning", "table", "error", "json error", "hook", "question"],
)
def test_a_hostile_text_is_printed_without_control_characters(
    show: Callable[[str], Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    show(HOSTILE)
    printed = "".join(capsys.readouterr())
    assert "52;c;cHduZWQ=" in printed
    assert not FORBIDDEN.intersection(printed)


def test_colours_and_live_displays_keep_their_own_sequences_only() -> None:
    screen = io.StringIO()
    console = SafeConsole(file=screen, force_terminal=True, width=80, color_system="standard")
    console.print("[red]stop[/]")
    table = Table("name")
    table.add_row(HOSTILE)
    with Live(console=console, auto_refresh=False) as live:
        live.update(table, refresh=True)
    printed = screen.getvalue()
    assert "\x1b[31mstop\x1b[0m" in printed
    assert "]52;c;cHduZWQ=" in printed
    assert "\x1b]" not in printed
    own = re.compile(r"\x1b\[(?:\??25[lh]|[0-9;]*[mAK]|2K)|\r")
    assert not FORBIDDEN.intersection(own.sub("", printed))


def test_a_log_line_on_a_terminal_has_no_control_characters(tmp_path: Path) -> None:
    stream = io.StringIO()
    configure_logs(Settings(home=tmp_path, log_format="console"), "test", stream=stream)
    logging.getLogger("reverie.test").error("refused %s", HOSTILE)
    assert "]52;c;" in stream.getvalue()
    assert not FORBIDDEN.intersection(stream.getvalue())


def test_text_in_every_script_is_left_alone() -> None:
    text = "naïve\tcafé\n日本語 العربية \u200f עברית 👩\u200d🚀 [bold]:smile:"
    assert strip_control_characters(text) == text


def test_commands_print_through_the_output_module_alone() -> None:
    """Another way to the terminal would be one that nothing cleans."""
    found = []
    for path in Path(reverie.cli.__file__).parent.rglob("*.py"):
        if path.parent.name == "app" and path.name in SEAMS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if re.fullmatch(
                    r"print|click\.(echo|secho|confirm|style)|Console|sys\.std(out|err)\.write",
                    name,
                ):
                    found.append(f"{path.name}: {ast.unparse(node)}")
    assert found == []


async def test_stored_memories_and_turns_do_not_reach_the_terminal_raw(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"We deploy on Thursdays {HOSTILE.replace(chr(0), '')} [link=https://x]:smile:[/link]"
    monkeypatch.chdir(tmp_path)
    env = {
        "REVERIE_API_KEY": stack.key,
        "REVERIE_GATEWAY_URL": stack.url,
        "REVERIE_HOME": str(tmp_path / "home"),
        "COLUMNS": "400",
    }

    async def run(*words: str, given: str = "") -> str:
        code, printed, error = await command(env, *words, given=given)
        assert code == 0, error
        return printed

    memory = json.loads(await run("remember", "-", "-k", "convention", "--json", given=text))["id"]
    for words in (
        ("show", memory),
        ("recall", "when do we deploy"),
        ("context",),
        ("memories",),
        ("history", memory),
        ("provenance", memory),
        ("subgraph", memory),
    ):
        printed = await run(*words)
        assert not FORBIDDEN.intersection(printed), words
        as_json = await run(*words, "--json")
        assert not FORBIDDEN.intersection(as_json), words
    stored = json.loads(await run("show", memory, "--json"))["content"]
    assert "\x1b]52;c;cHduZWQ=\x07" in stored
    assert "[link=https://x]:smile:[/link]" in await run("show", memory)
