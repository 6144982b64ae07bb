"""Scopes: paths inside a tenant that say whose memory it is.

`global`, `user/<u>`, `agent/<a>`, `agent/<a>/sub/<s>`, `session/<s>`, `project/<p>`,
`project/<p>/feature/<f>`, `project/<p>/topic/<l1>[/<l2>]`, `feature/<f>`,
`topic/<l1>[/<l2>]`; `vp/` is read as `agent/`, `group/` as `session/`.

A name is any text without `/`. Only that of a feature may hold one, as a branch does: it stands
last, and all that follows `feature/` is it. In the canonical form each name is its slug.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from reverie.domain.blank import is_blank
from reverie.domain.errors import Invalid
from reverie.domain.redaction import redact

GLOBAL = "global"
MAX_NAME = 64
LONGEST_NAME = 200
"""Characters of a name before it is made a slug."""

Levels = Sequence[tuple[str, str]]
"""A scope by its words, each with a name; the word is empty for the second level of a topic."""

_ALIAS = {"vp": "agent", "group": "session"}
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*")
_FORM = re.compile(
    r"global|user/(?P<user>[^/]+)|session/(?P<session>[^/]+)"
    r"|agent/(?P<agent>[^/]+)(?:/sub/(?P<sub>[^/]+))?"
    r"|(?:project/(?P<project>[^/]+)(?:/(?=feature/|topic/)|\Z))?"
    r"(?:feature/(?P<feature>.+)|topic/(?P<topic>[^/]+)(?:/(?P<below>[^/]+))?)?",
    re.DOTALL,
)
_HELP = (
    "use global, user/<u>, agent/<a>[/sub/<s>], session/<s>, "
    "project/<p>[/feature/<f> or /topic/<t>[/<t>]], feature/<f> or topic/<t>[/<t>]; "
    "only the name of a feature may hold a /"
)
_NAMES = (
    f"a name is 1 to {LONGEST_NAME} characters in one line, no *, and not . or .., nor is any part "
    "of a feature's between its /"
)
_NOT_OF_AGENTS = (GLOBAL, "user/*", "session/*", "project/*", "feature/*", "topic/*")
MAIN_LINES = frozenset({"main", "master", "trunk", "develop", "dev"})
"""Branches that everyone works on."""
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
_UNSAID = frozenset({"Cc", "Cs", "Zl", "Zp"})


def slug(name: str) -> str:
    """A name that is safe in paths and bus subjects, and holds no credential.

    A name that had to be changed gets six digits of its hash, so that `feat/login.v2`
    and `feat-login-v2` stay two. Raises `Invalid` on a name with no content.
    """
    text = shown_name(name)
    if is_blank(text):
        raise Invalid("scope", "a name in the scope is empty")
    if _is_slug(text):
        return text
    plain = _UNSAFE.sub("-", text.lower()).strip("-_")
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:6]
    return f"{plain[: MAX_NAME - 7].strip('-_')}-{digest}".lstrip("-")


def _is_slug(text: str) -> bool:
    return len(text) <= MAX_NAME and _SLUG.fullmatch(text) is not None


def shown_name(name: str) -> str:
    """A name as people read it: in one Unicode form, without credentials."""
    return redact(unicodedata.normalize("NFKC", name)).text.strip()


def parse_scope(text: str) -> str:
    """The canonical form of a scope. Raises `Invalid` naming the grammar."""
    return scope_at(_levels(text))


def parse_pattern(text: str) -> str:
    """A grant in its canonical form: `*`, a scope, or `/*` after a scope or after what one may
    begin with, as `project/*`. Raises `Invalid`."""
    text = text.strip()
    if text == "*" or not text.endswith("/*"):
        return text if text == "*" else parse_scope(text)
    with suppress(Invalid):
        first = parse_scope(f"{text[:-1]}x")
        if first.endswith("/x"):
            return f"{first[:-1]}*"
    levels = _levels(text[:-2])
    if levels[-1][0] == "feature":
        raise Invalid("scope", f"{text[:80]!r}: nothing lies below a feature, leave out the /*")
    return f"{scope_at(levels)}/*"


def scope_names(text: str) -> dict[str, str]:
    """What people call the scopes along a path, by canonical form; a name that is its own slug is
    left out. Raises as `parse_scope`."""
    return names_at(_levels(text))


def scope_at(levels: Levels) -> str:
    """The canonical scope of a path given as its words, each with a name."""
    return "/".join(part for word, name in levels for part in (word, name and slug(name)) if part)


def names_at(levels: Levels) -> dict[str, str]:
    """As `scope_names`, of a path given as its words, each with a name."""
    if all(_is_slug(name) for _, name in levels):
        return {}
    paths = {scope_at(levels[: n + 1]): shown_name(levels[n][1]) for n in range(len(levels))}
    return {path: name for path, name in paths.items() if named_by(path, name)}


def named_by(scope: str, name: str) -> bool:
    """Whether a name is fit to be shown for a scope: its slug, which is another, ends it."""
    end = scope.rpartition("/")[2]
    return name not in {"", end} and _sayable(name) and slug(name) == end


def above(scope: str) -> list[str]:
    """A canonical scope and the prefixes of it that may bear a name."""
    parts = scope.split("/")
    return ["/".join(parts[:n]) for n in range(2, len(parts) + 1)]


def shown_scope(scope: str, names: Mapping[str, str]) -> str:
    """A canonical scope as people read it, with names for slugs: `parse_scope` reads it too."""
    parts = scope.split("/")
    for place, path in enumerate(above(scope), 1):
        parts[place] = names.get(path, parts[place])
    shown = "/".join(parts)
    with suppress(Invalid):
        return shown if parse_scope(shown) == scope else scope
    return scope


def _levels(text: str) -> Levels:
    """The words and names of a scope. Raises `Invalid`."""
    head, _, rest = text.strip().partition("/")
    path = "/".join(filter(None, (_ALIAS.get(head.lower(), head.lower()), rest)))
    found = _FORM.fullmatch(path)
    if not path or not found:
        raise Invalid("scope", f"{text[:80]!r} is not a scope: {_HELP}")
    if redact(path).count:
        raise Invalid("scope", "holds a credential: scopes are shown, name it otherwise")
    given = [(word, name) for word, name in found.groupdict().items() if name is not None]
    for _, name in given:
        if not _sayable(name):
            raise Invalid("scope", f"{name[:40]!r} is no name: {_NAMES}")
    return [("" if word == "below" else word, name) for word, name in given] or [(GLOBAL, "")]


def _sayable(name: str) -> bool:
    """Whether a name can be told from a path, a pattern and the text around it."""
    if _is_slug(name):
        return True
    if "*" in name or any(unicodedata.category(char) in _UNSAID for char in name):
        return False
    parts = [part.strip() for part in name.split("/")]
    return len(name) <= LONGEST_NAME and not any(is_blank(p) or p in {".", ".."} for p in parts)


def project_of(scope: str) -> str | None:
    """The project name a scope lies in, if any."""
    parts = scope.split("/")
    return parts[1] if parts[0] == "project" else None


def branch_view(scope: str) -> str | None:
    """The slug of the branch that a scope of a project belongs to; None for what holds on the
    main line."""
    parts = scope.split("/")
    return parts[3] if len(parts) == 4 and parts[0] == "project" and parts[2] == "feature" else None


def home_levels(project: str | None, agent: str | None, branch: str | None = None) -> Levels:
    """Where a session's lasting memories go: its project (and feature), else its agent.

    Branches that everyone works on (main, master, trunk, develop) are the project itself.
    """
    if project:
        own = branch if branch not in MAIN_LINES else None
        return [("project", project), *([("feature", own)] if own else [])]
    return agent_levels(agent) if agent else [(GLOBAL, "")]


def agent_levels(name: str) -> Levels:
    """The path of an agent or a sub-agent, as `agent_name` reads the name."""
    head, middle, tail = name.strip().partition("/sub/")
    if middle and "/" not in head and "/" not in tail:
        return [("agent", head), ("sub", tail)]
    return [("agent", name)]


def agent_name(text: str) -> str:
    """An agent's name as it is compared: a slug, or `<a>/sub/<s>` for a sub-agent of another.

    Raises `Invalid` where it, or a part of it, is no name.
    """
    return "/sub/".join(slug(name) for _, name in agent_levels(text))


def matches(pattern: str, scope: str) -> bool:
    """Whether a grant pattern covers a scope: `*` covers all, `a/b/*` all below and `a/b`."""
    if pattern == "*":
        return True
    if pattern.endswith("/*"):
        return scope == pattern[:-2] or scope.startswith(pattern[:-1])
    return scope == pattern


def reading_scopes(home: str, agent: str | None, user: str | None) -> list[str]:
    """What a session sees by default, as patterns: its home, the project above a feature with all
    topics of it, its agent's and user's own memory, and global."""
    project = project_of(home)
    above = [f"project/{project}", f"project/{project}/topic/*"] if project else []
    own = [f"agent/{agent_name(agent)}"] if agent else []
    person = [f"user/{slug(user)}"] if user else []
    return list(dict.fromkeys([home, *above, *own, *person, GLOBAL]))


def common(one: Iterable[str], other: Iterable[str]) -> list[str]:
    """Patterns that cover what both lists cover."""
    others = list(other)
    found = [
        b if matches(a, b) else a for a in one for b in others if matches(a, b) or matches(b, a)
    ]
    return list(dict.fromkeys(found))


def without_other_agents(patterns: Iterable[str], agent: str | None) -> tuple[str, ...]:
    """The patterns less every scope of another agent than `agent` (None: nothing is taken away).

    An agent keeps what is its own and below it; a sub-agent its own, and its parent's only where
    a pattern names that.
    """
    if agent is None:
        return tuple(patterns)
    kept = [one for pattern in patterns for one in _for_agent(pattern, f"agent/{agent}")]
    return tuple(dict.fromkeys(kept))


def _for_agent(pattern: str, own: str) -> list[str]:
    if pattern == "*":
        return [*_NOT_OF_AGENTS, f"{own}/*"]
    if pattern != "agent" and not pattern.startswith("agent/"):
        return [pattern]
    parent = own.split("/sub/")[0]
    granted = [parent] if pattern in {parent, f"{parent}/*"} and parent != own else []
    return [*granted, *common([pattern], [f"{own}/*"])]
