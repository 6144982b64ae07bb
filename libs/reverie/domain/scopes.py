"""Scopes: paths inside a tenant that say whose memory it is.

`global`, `user/<u>`, `agent/<a>`, `agent/<a>/sub/<s>`, `session/<s>`, `project/<p>`,
`project/<p>/feature/<f>`, `project/<p>/topic/<l1>[/<l2>]`, `feature/<f>`,
`topic/<l1>[/<l2>]`; `vp/` is read as `agent/`, `group/` as `session/`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from reverie.domain.errors import Invalid
from reverie.domain.redaction import redact

GLOBAL = "global"
MAX_NAME = 64

_ALIAS = {"vp": "agent", "group": "session"}
_NAME = r"[a-z0-9][a-z0-9_-]*"
_GRAMMAR = re.compile(
    rf"global"
    rf"|user/{_NAME}"
    rf"|agent/{_NAME}(/sub/{_NAME})?"
    rf"|session/{_NAME}"
    rf"|project/{_NAME}(/feature/{_NAME}|/topic/{_NAME}(/{_NAME})?)?"
    rf"|feature/{_NAME}"
    rf"|topic/{_NAME}(/{_NAME})?"
)
_NOT_OF_AGENTS = (GLOBAL, "user/*", "session/*", "project/*", "feature/*", "topic/*")
_UNSAFE = re.compile(r"[^a-z0-9_-]+")


def slug(name: str) -> str:
    """A name that is safe in paths and bus subjects, and holds no credential.

    A name that had to be changed gets six digits of its hash, so that `feat/login.v2`
    and `feat-login-v2` stay two. Raises `Invalid` on a name with no content.
    """
    text = redact(unicodedata.normalize("NFKC", name)).text.strip()
    if not text:
        raise Invalid("scope", "a name in the scope is empty")
    plain = _UNSAFE.sub("-", text.lower()).strip("-_")
    if plain == name and len(plain) <= MAX_NAME:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{plain[: MAX_NAME - 7].strip('-_')}-{digest}".lstrip("-")


def parse_scope(text: str) -> str:
    """The canonical form of a scope. Raises `Invalid` naming the grammar."""
    head, _, rest = text.strip().partition("/")
    path = "/".join(filter(None, (_ALIAS.get(head.lower(), head.lower()), rest)))
    too_long = any(len(part) > MAX_NAME for part in path.split("/"))
    if too_long or not _GRAMMAR.fullmatch(path):
        raise Invalid(
            "scope",
            f"{text[:80]!r} is not a scope: use global, user/<u>, agent/<a>, session/<s>, "
            "project/<p>[/feature/<f> or /topic/<t>], with names of a-z 0-9 _ -",
        )
    if redact(path).count:
        raise Invalid("scope", "holds a credential: scopes are shown, name it otherwise")
    return path


def project_of(scope: str) -> str | None:
    """The project name a scope lies in, if any."""
    parts = scope.split("/")
    return parts[1] if parts[0] == "project" else None


def home_scope(project: str | None, agent: str | None, branch: str | None = None) -> str:
    """Where a session's lasting memories go: its project (and feature), else its agent.

    Branches that everyone works on (main, master, trunk, develop) are the project itself.
    """
    if project:
        base = f"project/{slug(project)}"
        if branch and branch not in {"main", "master", "trunk", "develop", "dev"}:
            return f"{base}/feature/{slug(branch)}"
        return base
    return f"agent/{agent_name(agent)}" if agent else GLOBAL


def agent_name(text: str) -> str:
    """An agent's name as it is compared: a slug, or `<a>/sub/<s>` for a sub-agent of another."""
    head, middle, tail = text.strip().partition("/sub/")
    if middle and "/" not in head and "/" not in tail:
        return f"{slug(head)}/sub/{slug(tail)}"
    return slug(text)


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
