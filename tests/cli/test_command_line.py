"""The command line: help, exit codes, one-line errors, JSON, completion, start-up imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.app import main as command_line
from reverie.cli.app.main import app


def run_python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, without settings of this one."""
    plain = {name: value for name, value in os.environ.items() if "REVERIE" not in name}
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        env=plain | env,
        check=False,
        timeout=60,
    )


Ended = tuple[int | str | None, str, str]
Main = Callable[..., Ended]


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Main:
    """The program in this process: the exit code, and what it wrote to each stream."""

    def ended(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["reverie", *arguments])
        with pytest.raises(SystemExit) as raised:
            command_line.main()
        return raised.value.code, *capsys.readouterr()

    return ended


def test_an_unknown_command_is_a_one_line_usage_error_that_suggests_similar_ones(
    main: Main,
) -> None:
    code, shown, said = main("recal", "deploy")
    assert (code, shown, len(said.splitlines())) == (2, "", 1)
    assert "'recall'" in said
    code, _, said = main("export")
    assert code == 2
    assert said.startswith("reverie: Missing option '--output' / '-o'; for example: reverie export")
    code, _, said = main("recall", "deploy", "--limit=0", "--json")
    assert (code, json.loads(said)["code"]) == (2, "invalid")


def test_the_completion_script_is_printed_for_each_shell() -> None:
    for shell in ("bash", "zsh", "fish"):
        shown = CliRunner().invoke(app, ["completion", shell])
        assert f"_REVERIE_COMPLETE={shell}_complete" in shown.stdout


def test_status_without_a_running_system_reports_so_in_json_and_exit_code(tmp_path: Path) -> None:
    flags = [
        f"--set={name}_port={port}"
        for port, name in enumerate(("recall", "ingest", "dream", "staleness"), start=1)
    ]
    shown = CliRunner().invoke(app, ["status", "--json", "--home", str(tmp_path / "no"), *flags])
    found = json.loads(shown.stdout)
    assert (shown.exit_code, found["running"], found["gateway"]) == (3, False, None)
    assert not (tmp_path / "no").exists()


def test_a_known_error_is_one_line_on_standard_error_without_a_traceback(tmp_path: Path) -> None:
    arguments = ["reverie", "key", "list", "--home", str(tmp_path)]
    code = f"import sys; sys.argv = {arguments}; from reverie.cli.app.main import main; main()"
    done = run_python(code)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("reverie: Postgres does not answer: run `reverie up`")
    assert len(done.stderr.splitlines()) == 1


def test_an_unexpected_error_is_one_line_and_the_traceback_is_available_on_demand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("the wheel came off\nand more")

    monkeypatch.setattr(command_line.app, "main", broken)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("reverie: RuntimeError: the wheel came off (this should not happen")
    assert len(said.splitlines()) == 1
    monkeypatch.setenv("REVERIE_LOG_LEVEL", "debug")
    with pytest.raises(RuntimeError):
        command_line.main()


@pytest.mark.parametrize(
    ("setting", "says", "code"),
    [("recall_port", "--set: expected NAME=VALUE", 2), ("recal_port=1", "did you mean", 1)],
)
def test_an_unknown_setting_is_refused_with_a_message(
    main: Main, tmp_path: Path, setting: str, says: str, code: int
) -> None:
    ended, _, said = main("status", "--home", str(tmp_path), "--set", setting)
    assert ended == code
    assert says in said
    assert "Traceback" not in said


def test_no_color_disables_colours(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    colour = re.compile(r"\x1b\[[\d;]*3\dm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    for no_color, is_coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_color)
        assert bool(colour.search(main("dance")[2])) is is_coloured


def test_a_service_imports_no_embedded_component_and_no_client_of_a_model() -> None:
    """A client of a model would cost seconds and tens of megabytes."""
    code = (
        "import sys; sys.argv = ['reverie', 'serve', 'ingest', '--set', 'ingest_port=0']\n"
        "from reverie.cli.app.main import main\n"
        "def loaded(*names):\n"
        " print([m for m in sys.modules if m.startswith(names)])\n"
        "try: main()\nfinally:\n loaded('rich', 'pygments', 'reverie.embedded')\n"
        " import reverie_services.dream.app, reverie_services.recall.app\n"
        " loaded('pydantic_ai', 'openai', 'anthropic', 'reverie.embedded')"
    )
    done = run_python(code)
    assert "database_url" in done.stderr + done.stdout
    assert done.stdout.splitlines()[-2:] == ["[]", "[]"]


def test_what_reverie_up_becomes_imports_no_settings_client_or_driver() -> None:
    heavy = ("pydantic", "click", "rich", "psycopg", "nats", "aiohttp", "numpy", "filelock")
    module = "reverie.cli.operate.up_successor"
    done = run_python(f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])")
    assert done.stdout.strip() == "[]"


AWAY = {"REVERIE_API_KEY": "k", "REVERIE_GATEWAY_URL": "http://127.0.0.1:9"}


def test_interactive_commands_import_no_driver_and_no_model(tmp_path: Path) -> None:
    heavy = (
        *("asyncpg", "psycopg", "nats", "onnxruntime", "numpy"),
        *("aiohttp", "pydantic_settings", "asyncio"),
    )
    code = (
        "import sys; from click.testing import CliRunner; from reverie.cli.app.main import app\n"
        "import reverie.cli.app.main; before = set(sys.modules)\n"
        "for words in (['--help'], ['recall', 'deploy'], ['remember', 'a fact']):\n"
        " CliRunner().invoke(app, words); CliRunner().invoke(app, words)\n"
        f" print(words, *[m for m in {heavy} if m in set(sys.modules) - before])"
    )
    done = run_python(code, **AWAY, REVERIE_HOME=str(tmp_path))
    assert [line.partition("]")[2] for line in done.stdout.splitlines()] == ["", "", ""], done


def test_plain_commands_import_neither_pydantic_nor_rich(tmp_path: Path) -> None:
    heavy = ("pydantic", "rich", "asyncio", "http.server", "tenacity", "hashlib")
    commands = (["recall", "deploy", "--limit=5", "--kind=bug"], ["show", "7c2f01aa"], ["stats"])
    code = (
        "import sys; from reverie.cli.app.entrypoint import main\n"
        f"for words in {commands}:\n"
        " sys.argv = ['reverie', *words, '--json']\n"
        " try: main()\n"
        " except SystemExit as ended: print(ended.code, end=' ')\n"
        f" finally: print([m for m in {heavy} if m in sys.modules])"
    )
    done = run_python(code, **AWAY, REVERIE_HOME=str(tmp_path))
    assert done.stdout.splitlines() == ["3 []"] * 3, done.stderr


def test_shell_completion_imports_no_command() -> None:
    words = {"COMP_WORDS": "reverie sho", "COMP_CWORD": "1", "_REVERIE_COMPLETE": "bash_complete"}
    code = (
        "import sys; sys.argv = ['reverie']; from reverie.cli.app.main import main\n"
        "try: main()\nfinally: print('reverie.cli.memory.remember_recall' in sys.modules)"
    )
    done = run_python(code, **words)
    assert done.stdout.split() == ["plain,show", "False"]


def test_a_folder_is_initialized_as_a_project_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "shop" / "src"
    below.mkdir(parents=True)
    (tmp_path / "shop" / ".git").mkdir()
    (tmp_path / "shop" / "reverie.toml").write_text("log_level = 'info'\n")
    monkeypatch.chdir(below)
    made = json.loads(CliRunner().invoke(app, ["init", "--json"]).stdout)
    assert (made["project"], made["written"]) == ("shop", True)
    kept = (tmp_path / "shop" / "reverie.toml").read_text()
    assert kept == "project = \"shop\"\nlog_level = 'info'\n"
    assert not json.loads(CliRunner().invoke(app, ["init", "--json"]).stdout)["written"]
    other = CliRunner().invoke(app, ["init", "other"])
    assert "names the project shop" in str(other.exception)


def test_doctor_reports_problems_and_how_to_fix_them(tmp_path: Path) -> None:
    broken = ["--set", f"postgres_bin={tmp_path}", "--set", f"nats_bin={tmp_path}"]
    llm = ("llm_provider=openai", "llm_model=stub", "llm_url=http://127.0.0.1:1/v1")
    broken += [word for one in llm for word in ("--set", one)]
    shown = CliRunner().invoke(app, ["doctor", "--json", "--home", str(tmp_path / "h"), *broken])
    errors = [f["message"] for f in json.loads(shown.stdout) if f["level"] == "error"]
    assert shown.exit_code == 1
    assert any("REVERIE_POSTGRES_BIN" in what for what in errors)
    assert any("REVERIE_NATS_BIN" in what for what in errors)
    assert any("stub at http://127.0.0.1:1/v1 does not answer" in what for what in errors)


def test_a_file_that_cannot_be_written_is_named_in_a_plain_error(
    main: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path))
    for flags in ((), ("--json",)):
        code, _, error = main("admin", "backup", "/proc/backup", *flags)
        assert code == 1
        said = json.loads(error)["detail"] if flags else error
        assert "/proc/backup" in said
        assert "No such file or directory" in said
        assert "should not happen" not in said
