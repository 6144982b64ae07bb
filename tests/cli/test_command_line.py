"""The command line: help, exit codes, one-line errors, JSON, completion, start-up imports."""

from __future__ import annotations

import fcntl
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
from reverie.cli.app.gateway_settings import resolve_endpoint
from reverie.cli.app.main import app
from reverie.domain.core.errors import InvalidInput, Unavailable


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "reverie.cli.app.main", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | (env or {}),
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
    done = run("recal", "deploy")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "'recall'" in done.stderr
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
    done = run("key", "list", "--home", str(tmp_path))
    assert done.returncode == 3
    assert done.stdout == ""
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


def test_no_color_disables_colours() -> None:
    colour = re.compile(r"\x1b\[[\d;]*3\dm")
    forced = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert colour.search(run("dance", env=forced | {"NO_COLOR": ""}).stderr)
    assert not colour.search(run("dance", env=forced | {"NO_COLOR": "1"}).stderr)


def test_the_command_that_starts_a_service_imports_no_embedded_component() -> None:
    """That no service does, the import contract `production` holds."""
    code = (
        "import sys, reverie.cli.app.main, reverie.cli.operate.lifecycle, reverie.runtime.service;"
        "print(*[m for m in sys.modules if m.startswith('reverie.embedded')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""


def test_a_service_imports_nothing_for_coloured_tracebacks_or_models_that_it_has_not() -> None:
    """A client of a model would cost seconds and tens of megabytes."""
    code = (
        "import sys; sys.argv = ['reverie', 'serve', 'ingest', '--set', 'ingest_port=0']\n"
        "from reverie.cli.app.main import main\n"
        "try: main()\nfinally:\n print([m for m in ('rich', 'pygments') if m in sys.modules])\n"
        " import reverie_services.dream.app, reverie_services.recall.app\n"
        " print([m for m in ('pydantic_ai', 'openai', 'anthropic') if m in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if "REVERIE" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
    )
    assert "database_url" in done.stderr + done.stdout
    assert done.stdout.splitlines()[-2:] == ["[]", "[]"]


def test_what_reverie_up_becomes_imports_no_settings_client_or_driver() -> None:
    heavy = ("pydantic", "click", "rich", "psycopg", "nats", "aiohttp", "numpy", "filelock")
    module = "reverie.cli.operate.up_successor"
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("words", [["--help"], ["recall", "deploy"], ["remember", "a fact"]])
def test_interactive_commands_import_no_driver_and_no_model(
    words: list[str], tmp_path: Path
) -> None:
    heavy = (
        *("asyncpg", "psycopg", "nats", "onnxruntime", "numpy"),
        *("aiohttp", "pydantic_settings", "asyncio"),
    )
    code = (
        "import sys; from click.testing import CliRunner; from reverie.cli.app.main import app;"
        "import reverie.cli.app.main; before = set(sys.modules);"
        f"CliRunner().invoke(app, {words}); CliRunner().invoke(app, {words});"
        f"print(*[m for m in {heavy} if m in set(sys.modules) - before])"
    )
    away = {"REVERIE_API_KEY": "k", "REVERIE_GATEWAY_URL": "http://127.0.0.1:9"}
    env = os.environ | away | {"REVERIE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=env,
    )
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    "words", [["recall", "deploy", "--limit=5", "--kind=bug"], ["show", "7c2f01aa"], ["stats"]]
)
def test_a_plain_command_imports_neither_pydantic_nor_rich(
    words: list[str], tmp_path: Path
) -> None:
    heavy = ("pydantic", "rich", "asyncio", "http.server", "tenacity", "hashlib")
    code = (
        f"import sys; sys.argv = ['reverie', *{words}, '--json']\n"
        "from reverie.cli.app.entrypoint import main\n"
        f"try: main()\nfinally: print([m for m in {heavy} if m in sys.modules])"
    )
    away = {"REVERIE_API_KEY": "k", "REVERIE_GATEWAY_URL": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | away | {"REVERIE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout.strip()) == (3, "[]"), done.stderr


def test_shell_completion_imports_no_command(tmp_path: Path) -> None:
    words = {"COMP_WORDS": "reverie sho", "COMP_CWORD": "1", "_REVERIE_COMPLETE": "bash_complete"}
    code = (
        "import sys; sys.argv = ['reverie']; from reverie.cli.app.main import main\n"
        "try: main()\nfinally: print('reverie.cli.memory.remember_recall' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | words,
    )
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


def test_the_key_of_a_home_folder_is_sent_to_no_other_gateway(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in ("run", "secrets"):
        (home / folder).mkdir(parents=True)
    (home / "secrets" / "api_key").write_text("home's key")
    (home / "run" / "up.json").write_text('{"gateway": "http://127.0.0.1:3456"}')
    said = {"home": str(home), "gateway_url": "http://elsewhere:1"}
    with (home / "run" / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert resolve_endpoint({"home": str(home)}) == ("http://127.0.0.1:3456", "home's key")
        with pytest.raises(InvalidInput, match="REVERIE_API_KEY"):
            resolve_endpoint(said)
        assert resolve_endpoint({**said, "api_key": "own"}) == ("http://elsewhere:1", "own")
    with pytest.raises(Unavailable, match="reverie up"):
        resolve_endpoint({"home": str(home)})


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
