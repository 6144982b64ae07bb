"""Links and commands on every page of the documentation lead somewhere."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click

from reverie.cli.app.main import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "helm").rglob("*.md")])
LINK = re.compile(r"(?:\]\(|(?:src|href)=\")([^)\"\s]+)")
PAGES_FOR_CONTRIBUTORS = frozenset({"CONTRIBUTING.md", "performance.md", "reliability.md"})
PATH_IN_CODE = re.compile(r"\bdocs/[\w/-]+\.(?:md|svg)(?:#[\w-]+)?")
COMMAND = re.compile(r"\breverie((?: [a-z][a-z0-9-]*)+)")
MODULE = re.compile(r"`((?:ingest|recall|dream|staleness)(?:\.[a-z_]+)+)`")
CODE_FOLDERS = ("libs", "services", "tests", "chaos", "benchmarks", "deploy", "helm")
CODE_SUFFIXES = frozenset({".py", ".yaml", ".yml", ".txt", ".tpl", ".json", ".sql", ".toml"})
SAMPLE_TEXTS = (
    "benchmarks/quality/sets",
    "tests/agent",
    "tests/domain",
    "tests/docs",
    "tests/dream",
    "tests/recall",
    "tests/staleness",
)
"""Where paths below docs/ belong to the projects that a test makes up."""


def heading_ids(page: str) -> set[str]:
    """The anchors that the page's headings give, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def leads_somewhere(link: str, folder: Path, page: Path | None = None) -> bool:
    """Whether a relative link names a file that is there, and a heading in it."""
    path, _, heading = link.partition("#")
    target = (folder / path).resolve() if path else page
    if target is None or not target.exists():
        return False
    return not heading or heading in heading_ids(target.read_text())


def test_every_relative_link_resolves() -> None:
    for page in PAGES:
        links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
        assert [link for link in links if not leads_somewhere(link, page.parent, page)] == [], page


def test_every_service_module_that_the_architecture_names_exists() -> None:
    modules = MODULE.findall((ROOT / "docs/architecture.md").read_text())
    services = ROOT / "services/reverie_services"
    lost = [name for name in modules if not (services / f"{name.replace('.', '/')}.py").exists()]
    assert (bool(modules), lost) == (True, [])


def test_every_page_that_code_and_configuration_name_exists() -> None:
    lost = {
        f"{path.relative_to(ROOT)}: {link}"
        for name in CODE_FOLDERS
        for path in (ROOT / name).rglob("*")
        if path.suffix in CODE_SUFFIXES
        if not str(path.relative_to(ROOT)).startswith(SAMPLE_TEXTS)
        for link in PATH_IN_CODE.findall(path.read_text())
        if not leads_somewhere(link, ROOT)
    }
    assert lost == set()


def test_a_picture_needs_no_style_sheet() -> None:
    """Renderers other than browsers ignore style sheets, and draw everything black."""
    pictures = sorted(ROOT.glob("docs/pictures/*.svg"))
    assert pictures
    for picture in pictures:
        assert re.findall(r"<style|class=|var\(", picture.read_text()) == [], picture


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        links = (link.partition("#")[0] for link in LINK.findall(page.read_text()))
        waiting += [(page.parent / link).resolve() for link in links if link and "://" not in link]
    assert set(PAGES) - reached == {ROOT / "CHANGELOG.md"} - reached


def blocks_of(page: Path) -> list[str]:
    """The blocks of commands of a page."""
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def test_no_block_of_commands_has_a_comment() -> None:
    """A zsh into which somebody pastes them takes `#` and what follows for arguments."""
    for page in PAGES:
        if page.name not in PAGES_FOR_CONTRIBUTORS:
            lines = "".join(blocks_of(page)).splitlines()
            assert [line for line in lines if "#" in line.split()] == [], page


MAX_README_WORDS = 750


def test_the_page_of_frameworks_names_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    page = (ROOT / "docs/agents/frameworks.md").read_text()
    assert [extra for extra in extras if f", `{extra}` |" not in page] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= MAX_README_WORDS


MAX_SENTENCE_WORDS = 30


def sentences(page: str) -> list[str]:
    """The sentences of a page; a line of a list and a cell of a table count as their own."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", page, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"\n\n|\n(?=[-|#\d])|\|", text)
    return [one for part in parts for one in re.split(r"(?<=[.?!])\s+(?=[A-Z*`\[])", part)]


def test_no_sentence_has_more_than_thirty_words() -> None:
    for page in PAGES:
        found = sentences(page.read_text()) if page.parent.name != "reference" else []
        assert [one for one in found if len(one.split()) > MAX_SENTENCE_WORDS] == [], page


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


def test_every_command_in_the_documentation_exists() -> None:
    for page in PAGES:
        assert {words for words in commands_named(page) if not is_known(words)} == set(), page


CALL = re.compile(r"""(?:^|[\s(;|&`])reverie ((?:'[^']*'|"[^"]*"|[^|;&()`\n<>])*)""", re.MULTILINE)


def find_wrong_option(call: str) -> str | None:
    """What click says of the options of a call, if it refuses them."""
    command: click.Command | None = app
    context = click.Context(app, info_name="reverie")
    words = shlex.split(call)
    while isinstance(command, click.Group):
        command = command.get_command(context, words.pop(0)) if words else None
        if command is not None:
            context = click.Context(command, parent=context)
    try:
        if command is not None:
            command.make_parser(context).parse_args(words)
    except click.UsageError as error:
        return error.format_message()
    return None


def test_every_option_in_a_block_of_commands_exists() -> None:
    for page in PAGES:
        calls = [call for one in blocks_of(page) for call in CALL.findall(one.replace("\\\n", " "))]
        assert [wrong for call in calls if (wrong := find_wrong_option(call))] == [], page


def test_each_decision_has_its_own_number_is_short_and_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(folder.glob("[0-9]*.md"))
    headings = [re.match(r"# (\d+)\. ", page.read_text()) for page in pages]
    numbers = [int(page.name[:4]) for page in pages]
    assert [heading and int(heading[1]) for heading in headings] == numbers
    assert len(set(numbers)) == len(numbers)
    assert [page.name for page in pages if len(page.read_text().split()) > 250] == []
    index = (folder / "README.md").read_text()
    listed = re.findall(r"^- \[(\d+)\. .+\]\((.+)\)$", index, re.MULTILINE)
    assert listed == [(str(int(page.name[:4])), page.name) for page in pages]
