"""Finds and reads a project's `reverie.toml`. It comes with a clone, so it is not trusted.

Hooks wait for these imports, so only light modules of the standard library are used.
"""

from __future__ import annotations

import os
import re
import stat

PROJECT_FILE = "reverie.toml"
ALLOWED_NAMES = frozenset({"project"})
"""The names that a project file may set. Every other one is ignored, new settings included."""
MAX_FILE_BYTES = 65_536
_MAX_LISTED_NAMES = 10
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class UnusableProjectFile(ValueError):
    """The file cannot be read, or is not TOML; the text is the reason."""


class ProjectFile:
    """The project that the file names as a slug, and the names in it that are ignored."""

    def __init__(self, path: str, project: str | None, ignored: tuple[str, ...]) -> None:
        self.path = path
        self.project = project
        self.ignored = ignored

    @property
    def warning(self) -> str | None:
        """One line that lists what is ignored, and where it can be set instead."""
        if not self.ignored:
            return None
        from difflib import get_close_matches

        listed = [
            f"{_display_name(name)} (did you mean project?)"
            if get_close_matches(name, ALLOWED_NAMES)
            else _display_name(name)
            for name in self.ignored[:_MAX_LISTED_NAMES]
        ]
        if len(self.ignored) > _MAX_LISTED_NAMES:
            listed.append(f"{len(self.ignored) - _MAX_LISTED_NAMES} more")
        return (
            f"{self.path} comes with the project and may only set `project`; ignored: "
            f"{', '.join(listed)}. Set these in the environment (REVERIE_...) or in config.toml "
            "of the home folder"
        )


def find_project_file(start: str) -> str:
    """Finds the project file of a folder; if there is none, returns the path where it belongs.

    The search goes upwards to the top of the clone; outside of a clone, only the folder is
    searched. A linked work tree without a file has that of its clone.
    """
    folder = os.path.abspath(start)
    root = find_clone_root(folder) or folder
    searched = folder
    while not os.path.isfile(os.path.join(searched, PROJECT_FILE)):
        if searched == root:
            shared = os.path.join(find_main_root(root) or root, PROJECT_FILE)
            return shared if os.path.isfile(shared) else os.path.join(root, PROJECT_FILE)
        searched = os.path.dirname(searched)
    return os.path.join(searched, PROJECT_FILE)


def find_clone_root(folder: str) -> str | None:
    """The top folder of the clone that contains a folder; None outside of a clone."""
    directory = os.path.abspath(folder)
    while not os.path.exists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory


def find_main_root(root: str) -> str | None:
    """The top folder of the clone that a linked work tree was made from; None for other folders.

    Both name each other, so that no unpacked archive passes for a work tree of another clone.
    """
    try:
        if not os.path.isfile(link := os.path.join(root, ".git")):
            return None
        git_folder = os.path.join(root, _read_text(link).removeprefix("gitdir:").strip())
        folder, _, _ = os.path.normpath(git_folder).rpartition("/.git/worktrees/")
        back = os.path.join(git_folder, _read_text(os.path.join(git_folder, "gitdir")).strip())
        return folder if folder and os.path.realpath(back) == os.path.realpath(link) else None
    except (OSError, ValueError):
        return None


def read_project_file(path: str) -> ProjectFile:
    """Reads a project file; a missing one is empty. Raises `UnusableProjectFile`."""
    text = _read_text(path)
    if not text.strip():
        return ProjectFile(path, None, ())
    import tomllib

    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnusableProjectFile(f"is not TOML: {error}") from None
    ignored = tuple(name for name in values if name not in ALLOWED_NAMES)
    return ProjectFile(path, _project_slug(values.get("project")), ignored)


def _read_text(path: str) -> str:
    """The text of a regular file: a link in a clone may lead to a device without an end."""
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
        data = b""
        if is_regular:
            with open(path, "rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise UnusableProjectFile(f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise UnusableProjectFile("is in a folder whose name no file system accepts") from None
    if not is_regular:
        raise UnusableProjectFile("is not a regular file")
    if len(data) > MAX_FILE_BYTES:
        raise UnusableProjectFile(f"is longer than {MAX_FILE_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnusableProjectFile(f"is not TOML: byte {error.start} is not UTF-8") from None


def _project_slug(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > 200:
        raise UnusableProjectFile("must set `project` to a text of at most 200 characters")
    if _SLUG.fullmatch(value):
        return value
    from reverie.domain.access.scopes import slugify
    from reverie.domain.core.errors import InvalidInput

    try:
        return slugify(value)
    except InvalidInput:
        raise UnusableProjectFile("sets a blank `project`") from None


def _display_name(name: str) -> str:
    """A name as one word of plain characters."""
    return name if _PLAIN_NAME.fullmatch(name) else ascii(name[:64])
