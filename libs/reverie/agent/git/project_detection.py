"""Finds the project and branch of a folder from git's own files, without running git."""

from __future__ import annotations

import os

from reverie.contracts.project_file import (
    UnusableProjectFile,
    find_clone_root,
    find_main_root,
    find_project_file,
    read_project_file,
)

MAX_FILE_CHARS = 1_000_000
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class DetectedProject:
    """The top folder of a clone (or the folder itself), its project and branch."""

    def __init__(self, root: str, project: str, branch: str | None) -> None:
        self.root = root
        self.project = project
        self.branch = branch


def detect_project(
    folder: str, override: str | None, environ: Mapping[str, str]
) -> DetectedProject:
    """Detects the project of a folder.

    Sources in this order: override, environment, `reverie.toml`, git config (`reverie.project`),
    repository name, folder name. A linked work tree is of the project of its clone.
    """
    root = find_clone_root(folder)
    project = override or environ.get("REVERIE_PROJECT") or _project_in_file(folder)
    if root is None:
        return DetectedProject(
            folder, project or os.path.basename(folder.rstrip("/")) or "home", None
        )
    git_folder = _find_git_folder(root)
    common_folder = _read_text(os.path.join(git_folder, "commondir"))
    shared_folder = (
        os.path.normpath(os.path.join(git_folder, common_folder)) if common_folder else git_folder
    )
    settings = _read_git_config(os.path.join(shared_folder, "config"))
    name = (
        project
        or settings.get("reverie.project")
        or _repository_name(settings.get("remote.origin.url", ""))
    )
    name = name or os.path.basename(find_main_root(root) or root)
    return DetectedProject(root, name or "home", _read_branch(git_folder))


def head_stamp(root: str) -> str:
    """What changes whenever the checked-out commit of a clone does; empty outside of one."""
    git_folder = _find_git_folder(root)
    for name in ("logs/HEAD", "HEAD"):
        try:
            state = os.stat(os.path.join(git_folder, name))
        except OSError:
            continue
        return f"{state.st_mtime_ns}:{state.st_size}"
    return ""


def _project_in_file(folder: str) -> str | None:
    """The project that the folder's `reverie.toml` names."""
    try:
        return read_project_file(find_project_file(folder)).project
    except UnusableProjectFile:
        return None


def _find_git_folder(root: str) -> str:
    """Git's own folder of a work tree: a linked one names it in a file."""
    path = os.path.join(root, ".git")
    if os.path.isdir(path):
        return path
    return os.path.normpath(os.path.join(root, _read_text(path).removeprefix("gitdir:").strip()))


def _read_branch(git_folder: str) -> str | None:
    head = _read_text(os.path.join(git_folder, "HEAD"))
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None


def _read_git_config(path: str) -> dict[str, str]:
    values: dict[str, str] = {}
    section = ""
    for line in _read_text(path).splitlines():
        line = line.strip()
        if line.startswith("["):
            name, _, subsection = line.strip("[]").partition(" ")
            section = f"{name.lower()}.{subsection.strip().strip(chr(34))}".rstrip(".")
        elif "=" in line and line[0] not in "#;":
            name, _, value = line.partition("=")
            values[f"{section}.{name.strip().lower()}"] = value.strip().strip('"')
    return values


def _repository_name(url: str) -> str:
    """The repository's name in the address that is fetched from."""
    return url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]


def _read_text(path: str) -> str:
    """The beginning of a regular file: an unpacked archive may bring links to devices."""
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_FILE_CHARS).strip()
    except OSError:
        return ""
