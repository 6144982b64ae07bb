"""The project and branch that a folder belongs to, read from git's own files.

Asking git costs a process and more time than a hook has.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Where:
    """The top folder of a clone (or the folder itself), its project and branch."""

    def __init__(self, root: str, project: str, branch: str | None) -> None:
        self.root = root
        self.project = project
        self.branch = branch


def where(folder: str, named: str | None, environ: Mapping[str, str]) -> Where:
    """Whose memories a folder's are: as it is named, here, in the environment, in the project's
    `reverie.toml` or in git's configuration (`reverie.project`); else the repository's or the
    folder's name."""
    root = _root(folder)
    given = named or environ.get("REVERIE_PROJECT") or _named(os.path.abspath(folder), root)
    if root is None:
        return Where(folder, given or os.path.basename(folder.rstrip("/")) or "home", None)
    own = _git_folder(root)
    common = _text(os.path.join(own, "commondir"))
    shared = os.path.normpath(os.path.join(own, common)) if common else own
    settings = _settings(os.path.join(shared, "config"))
    found = given or settings.get("reverie.project") or _last(settings.get("remote.origin.url", ""))
    return Where(root, found or os.path.basename(root) or "home", _branch(own))


def _named(folder: str, root: str | None) -> str | None:
    """The project that the nearest `reverie.toml` names, up to the top of the clone."""
    text = _text(os.path.join(folder, "reverie.toml"))
    if not text:
        return None if root in {None, folder} else _named(os.path.dirname(folder), root)
    import tomllib

    try:
        found = tomllib.loads(text).get("project")
    except tomllib.TOMLDecodeError:
        return None
    return str(found) if found else None


def _root(folder: str) -> str | None:
    at = os.path.abspath(folder)
    while not os.path.exists(os.path.join(at, ".git")):
        up = os.path.dirname(at)
        if up == at:
            return None
        at = up
    return at


def _git_folder(root: str) -> str:
    """Git's own folder of a work tree: a linked one names it in a file."""
    path = os.path.join(root, ".git")
    if os.path.isdir(path):
        return path
    return os.path.normpath(os.path.join(root, _text(path).removeprefix("gitdir:").strip()))


def _branch(own: str) -> str | None:
    head = _text(os.path.join(own, "HEAD"))
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None


def _settings(path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    section = ""
    for line in _text(path).splitlines():
        line = line.strip()
        if line.startswith("["):
            name, _, sub = line.strip("[]").partition(" ")
            section = f"{name.lower()}.{sub.strip().strip(chr(34))}".rstrip(".")
        elif "=" in line and line[0] not in "#;":
            name, _, value = line.partition("=")
            found[f"{section}.{name.strip().lower()}"] = value.strip().strip('"')
    return found


def _last(url: str) -> str:
    """The repository's name in the address that is fetched from."""
    return url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
