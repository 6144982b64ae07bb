"""The CI and git-hook examples in deploy/ci are valid and call commands that exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.test_pages import COMMAND, is_known
from tests.support.git_clone import new_clone

FOLDER = Path(__file__).parents[2] / "deploy" / "ci"
SHELLCHECK = Path(sys.executable).with_name("shellcheck")
HOOK = FOLDER / "git-hook"


def _jobs() -> dict[str, tuple[str, dict[str, str]]]:
    """What each example runs, as one script, and its variables."""
    github: Any = yaml.safe_load((FOLDER / "github-actions.yml").read_text())
    [job] = github["jobs"].values()
    steps = [step for step in job["steps"] if "run" in step]
    names: dict[str, str] = {}
    for step in steps:
        names |= step.get("env", {})
    gitlab: Any = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text())
    [told] = gitlab.values()
    return {
        "github": ("\n".join(step["run"] for step in steps), names),
        "gitlab": ("\n".join([*told["before_script"], *told["script"]]), told["variables"]),
    }


def _checked(script: str) -> str:
    return subprocess.run(
        [SHELLCHECK, "--shell=sh", "-"], input=script, capture_output=True, text=True, check=False
    ).stdout


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_jobs_use_existing_commands_on_a_full_clone_and_fail_no_build(name: str) -> None:
    script, variables = _jobs()[name]
    assert "reverie git announce" in script
    assert all(is_known(words) for words in COMMAND.findall(script))
    assert _checked(script) == ""
    assert "REVERIE_PROJECT" in variables
    text = (FOLDER / {"github": "github-actions.yml", "gitlab": "gitlab-ci.yml"}[name]).read_text()
    assert ("fetch-depth: 0" in text) if name == "github" else variables["GIT_DEPTH"] == "0"
    assert "continue-on-error: true" in text or "allow_failure: true" in text


def test_the_hook_is_valid_and_blocks_nothing_where_reverie_is_missing(tmp_path: Path) -> None:
    assert _checked(HOOK.read_text()) == ""
    assert os.access(HOOK, os.X_OK)
    clone = new_clone(tmp_path / "clone")
    clone.git("config", "reverie.command", "no-such-command")
    clone.git("config", "reverie.wait", "true")
    (clone.root / ".git/hooks/post-commit").symlink_to(HOOK)
    clone.commit("One", {"a.txt": "a\n"})
    clone.commit("Two", {"a.txt": "b\n"})
    assert "no-such-command" in (clone.root / ".git/reverie/hook.log").read_text()
