"""Links, commands and generated tables in the documentation are correct.

`python -m tests.architecture.test_documentation` writes the table of settings into
docs/operations.md anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from reverie.cli.app.main import app
from reverie.contracts.problems import GRPC_STATUS, HTTP_STATUS, PROBLEM_TITLES
from reverie.domain.core.errors import ReverieError
from reverie.domain.core.kinds import ANCHOR_KINDS, KIND_POLICIES
from reverie.runtime.settings.loading import describe_settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
OPERATIONS = ROOT / "docs" / "operations.md"
BEGIN, END = "<!-- settings -->\n", "<!-- /settings -->"
LINK = re.compile(r"(?:\]\(|(?:src|href)=\")([^)\"\s]+)")
COMMAND = re.compile(r"\breverie((?: [a-z][a-z-]*)+)")


def settings_table() -> str:
    """Every setting as a row of Markdown."""
    rows = [
        f"| `{one.name}` | {f'`{one.default}`' if one.default != 'unset' else ''} "
        f"| {one.description}{' (secret)' if one.secret else ''} |"
        for one in describe_settings()
    ]
    return "\n".join(["| setting | default | what it is |", "|---|---|---|", *rows]) + "\n"


def with_table(page: str) -> str:
    """The page with its table as it should be."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + settings_table() + END + rest.split(END)[1]


def problems_table() -> str:
    """Every code of a problem as a row of Markdown."""
    rows = [
        f"| `{code}` | {status} | {PROBLEM_TITLES[code]} |" for code, status in HTTP_STATUS.items()
    ]
    return "\n".join(["| code | HTTP | what it says |", "|---|---|---|", *rows]) + "\n"


def heading_ids(page: str) -> set[str]:
    """The anchors that the page's headings give, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def leads_somewhere(link: str, page: Path) -> bool:
    """Whether a relative link names a file that is there, and a heading in it."""
    path, _, heading = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not heading or heading in heading_ids(target.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_resolves(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not leads_somewhere(link, page)] == []


def test_a_broken_link_is_detected() -> None:
    assert not leads_somewhere("docs/nowhere.md", ROOT / "README.md")
    assert not leads_somewhere("docs/operations.md#nothing", ROOT / "README.md")


def test_the_table_of_settings_is_current() -> None:
    page = OPERATIONS.read_text()
    assert page == with_table(page), "run: python -m tests.architecture.test_documentation"


def test_the_table_of_problems_is_current_and_names_every_error() -> None:
    assert problems_table() in (ROOT / "docs" / "agents.md").read_text()
    codes = {one.code for one in _below(ReverieError)}
    assert codes <= HTTP_STATUS.keys()
    assert HTTP_STATUS.keys() == PROBLEM_TITLES.keys() == GRPC_STATUS.keys()


def _below(tree: type[ReverieError]) -> set[type[ReverieError]]:
    return {tree}.union(*map(_below, tree.__subclasses__()))


def test_the_table_of_kinds_is_current() -> None:
    rows = set(re.findall(r"^\| .* \|$", (ROOT / "docs" / "agents.md").read_text(), re.MULTILINE))
    told = {kind: how for kind, how in KIND_POLICIES.items() if kind not in ANCHOR_KINDS}
    for kind, how in told.items():
        asked, fades = ("yes" if one else "no" for one in (how.in_session_context, how.decays))
        aliases = ", ".join(how.aliases)
        assert f"| {kind.value} | {aliases} | {how.tier.value} | {asked} | {fades} |" in rows


def commands_named(page: Path) -> set[str]:
    """What follows `reverie` wherever it stands as code, in blocks and in lines."""
    text = page.read_text()
    code = re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, re.DOTALL)
    return {found for pair in code for part in pair for found in COMMAND.findall(part)}


def is_known(words: str) -> bool:
    """Whether the words begin with a command; what follows a command is its arguments."""
    command: click.Command | None = app
    for word in words.split():
        if not isinstance(command, click.Group):
            return True
        command = command.get_command(click.Context(command), word)
        if command is None:
            return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_the_documentation_exists(page: Path) -> None:
    assert {words for words in commands_named(page) if not is_known(words)} == set()


def test_the_readme_names_the_commands_that_a_newcomer_needs() -> None:
    named = commands_named(ROOT / "README.md")
    assert {" up", " doctor", " migrate"} <= {f" {words.split()[0]}" for words in named}


def test_an_unknown_command_is_detected() -> None:
    assert not is_known(" sing")
    assert not is_known(" key sing")


def test_each_decision_has_its_own_number_is_short_and_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(folder.glob("[0-9]*.md"))
    headings = [re.match(r"# (\d+)\. ", page.read_text()) for page in pages]
    numbers = [int(page.name[:4]) for page in pages]
    assert [heading and int(heading[1]) for heading in headings] == numbers
    assert len(set(numbers)) == len(numbers)
    assert [page.name for page in pages if len(page.read_text().split()) > 260] == []
    listed = re.findall(
        r"^(\d+)\. \[.+\]\((.+)\)$", (folder / "README.md").read_text(), re.MULTILINE
    )
    assert listed == [(str(int(page.name[:4])), page.name) for page in pages]


if __name__ == "__main__":
    OPERATIONS.write_text(with_table(OPERATIONS.read_text()))
