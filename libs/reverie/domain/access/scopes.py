"""Scopes: their grammar, canonical form and display names, and matching by grant patterns.

`global`, `user/<u>`, `agent/<a>`, `agent/<a>/sub/<s>`, `session/<s>`, `project/<p>`,
`project/<p>/feature/<f>`, `project/<p>/topic/<l1>[/<l2>]`, `feature/<f>`, `topic/<l1>[/<l2>]`;
`vp/` is an alias of `agent/`, `group/` of `session/`.

Only the name of a feature may contain `/`. In the canonical form each name is a slug.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.scope_patterns import scope_matches as scope_matches
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR, Redactor, redact
from reverie.domain.text.characters import is_blank

GLOBAL_SCOPE = "global"
MAX_SLUG_LENGTH = 64
MAX_NAME_LENGTH = 200
"""Longest name, before it becomes a slug."""

ScopeLevels = Sequence[tuple[str, str]]
"""A scope as pairs of word and name. The word is empty for the second level of a topic."""

_WORD_ALIASES = {"vp": "agent", "group": "session"}
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*")
_SCOPE_PATTERN = re.compile(
    r"global|user/(?P<user>[^/]+)|session/(?P<session>[^/]+)"
    r"|agent/(?P<agent>[^/]+)(?:/sub/(?P<sub>[^/]+))?"
    r"|(?:project/(?P<project>[^/]+)(?:/(?=feature/|topic/)|\Z))?"
    r"(?:feature/(?P<feature>.+)|topic/(?P<topic>[^/]+)(?:/(?P<below>[^/]+))?)?",
    re.DOTALL,
)
_SCOPE_HELP = (
    "use global, user/<u>, agent/<a>[/sub/<s>], session/<s>, "
    "project/<p>[/feature/<f> or /topic/<t>[/<t>]], feature/<f> or topic/<t>[/<t>]; "
    "only the name of a feature may hold a /"
)
_NAME_HELP = (
    f"a name is 1 to {MAX_NAME_LENGTH} characters in one line, no *, and not . or .., "
    "nor is any part "
    "of a feature's between its /"
)
_CREDENTIAL_HELP = "holds a credential: scopes are shown, name it otherwise"
_SHARED_PATTERNS = (GLOBAL_SCOPE, "session/*", "project/*", "feature/*", "topic/*")
MAIN_BRANCHES = frozenset({"main", "master", "trunk", "develop", "dev"})
"""Names of main branches."""
_UNSAFE_CHARS = re.compile(r"[^a-z0-9_-]+")
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})


def slugify(name: str) -> str:
    """A name that is safe in paths and bus subjects, and contains no credential.

    A changed name gets six digits of its hash, so that `feat/login.v2` and `feat-login-v2` stay
    distinct. Raises `InvalidInput` for a blank name.
    """
    text = format_display_name(name)
    if is_blank(text):
        raise InvalidInput("scope", "a name in the scope is empty")
    if _is_slug(text):
        return text
    safe = _UNSAFE_CHARS.sub("-", text.lower()).strip("-_")
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:6]
    slug = f"{safe[: MAX_SLUG_LENGTH - 7].strip('-_')}-{digest}".lstrip("-")
    # A slug can look like a credential where the name does not.
    return f"name-{digest}" if redact(slug).count else slug


def _is_slug(text: str) -> bool:
    return len(text) <= MAX_SLUG_LENGTH and _SLUG.fullmatch(text) is not None


def format_display_name(name: str) -> str:
    """A name in its displayed form: NFKC, without credentials."""
    return redact(unicodedata.normalize("NFKC", name)).text.strip()


def parse_scope(text: str, redactor: Redactor = CREDENTIAL_REDACTOR) -> str:
    """Returns the canonical form of a scope.

    Raises `InvalidInput` if it is no scope, or if it contains a text that the redactor replaces.
    """
    return build_scope(_parse_levels(text, redactor))


def parse_pattern(text: str) -> str:
    """A grant pattern in canonical form: `*`, a scope, or `/*` after a scope or the beginning of
    one, such as `project/*`. Raises `InvalidInput`."""
    text = text.strip()
    if text == "*" or not text.endswith("/*"):
        return text if text == "*" else parse_scope(text)
    with suppress(InvalidInput):
        first = parse_scope(f"{text[:-1]}x")
        if first.endswith("/x"):
            return f"{first[:-1]}*"
    levels = _parse_levels(text[:-2])
    if levels[-1][0] == "feature":
        raise InvalidInput(
            "scope", f"{text[:80]!r}: nothing lies below a feature, leave out the /*"
        )
    return f"{build_scope(levels)}/*"


def parse_display_names(text: str) -> dict[str, str]:
    """The displayed names of the scopes along a path, by canonical scope.

    Names that equal their slug are left out. Raises as `parse_scope`.
    """
    return display_names_at(_parse_levels(text))


def build_scope(levels: ScopeLevels) -> str:
    """The canonical scope of a path that is given by levels."""
    return "/".join(
        part for word, name in levels for part in (word, name and slugify(name)) if part
    )


def display_names_at(levels: ScopeLevels) -> dict[str, str]:
    """As `parse_display_names`, for a path that is given by levels."""
    if all(_is_slug(name) for _, name in levels):
        return {}
    paths = {
        build_scope(levels[: n + 1]): format_display_name(levels[n][1]) for n in range(len(levels))
    }
    return {path: name for path, name in paths.items() if is_display_name(path, name)}


def is_display_name(scope: str, name: str) -> bool:
    """Whether a name can be displayed for a scope: its slug differs from it and ends the scope."""
    last_slug = scope.rpartition("/")[2]
    return name not in {"", last_slug} and _is_valid_name(name) and slugify(name) == last_slug


def list_named_prefixes(scope: str) -> list[str]:
    """A canonical scope and its prefixes that may have a displayed name."""
    parts = scope.split("/")
    return ["/".join(parts[:n]) for n in range(2, len(parts) + 1)]


def format_scope(scope: str, names: Mapping[str, str]) -> str:
    """A canonical scope with displayed names for slugs. `parse_scope` accepts it too."""
    parts = scope.split("/")
    for index, path in enumerate(list_named_prefixes(scope), 1):
        parts[index] = names.get(path, parts[index])
    formatted = "/".join(parts)
    with suppress(InvalidInput):
        return formatted if parse_scope(formatted) == scope else scope
    return scope


def _parse_levels(text: str, redactor: Redactor = CREDENTIAL_REDACTOR) -> ScopeLevels:
    """The words and names of a scope. Raises `InvalidInput`."""
    head, _, rest = text.strip().partition("/")
    path = "/".join(filter(None, (_WORD_ALIASES.get(head.lower(), head.lower()), rest)))
    found = _SCOPE_PATTERN.fullmatch(path)
    if not path or not found:
        raise InvalidInput("scope", f"{text[:80]!r} is not a scope: {_SCOPE_HELP}")
    if redactor.redact(path).count:
        raise InvalidInput("scope", _CREDENTIAL_HELP)
    named = [(word, name) for word, name in found.groupdict().items() if name is not None]
    for _, name in named:
        if not _is_valid_name(name):
            raise InvalidInput("scope", f"{name[:40]!r} is no name: {_NAME_HELP}")
    levels = [("" if word == "below" else word, name) for word, name in named] or [
        (GLOBAL_SCOPE, "")
    ]
    # What is accepted must be accepted again in its canonical form.
    if (canonical := build_scope(levels)) != path and redactor.redact(canonical).count:
        raise InvalidInput("scope", _CREDENTIAL_HELP)
    return levels


def _is_valid_name(name: str) -> bool:
    """Whether a name cannot be confused with a path or a pattern."""
    if _is_slug(name):
        return True
    if "*" in name or any(unicodedata.category(char) in _FORBIDDEN_CATEGORIES for char in name):
        return False
    parts = [part.strip() for part in name.split("/")]
    return len(name) <= MAX_NAME_LENGTH and not any(is_blank(p) or p in {".", ".."} for p in parts)


def project_of_scope(scope: str) -> str | None:
    """Returns the name of the project that contains a scope, if any."""
    parts = scope.split("/")
    return parts[1] if parts[0] == "project" else None


def branch_of_scope(scope: str) -> str | None:
    """The slug of the branch that a scope of a project belongs to; None on the main branch."""
    parts = scope.split("/")
    return parts[3] if len(parts) == 4 and parts[0] == "project" and parts[2] == "feature" else None


def home_levels(project: str | None, agent: str | None, branch: str | None = None) -> ScopeLevels:
    """The scope of a session's lasting memories: its project (and feature), else its agent.

    A main branch (main, master, trunk, develop, dev) counts as the project itself.
    """
    if project:
        feature = branch if branch not in MAIN_BRANCHES else None
        return [("project", project), *([("feature", feature)] if feature else [])]
    return agent_levels(agent) if agent else [(GLOBAL_SCOPE, "")]


def agent_levels(name: str) -> ScopeLevels:
    """The levels of an agent, or of a sub-agent named `<agent>/sub/<name>`."""
    head, middle, tail = name.strip().partition("/sub/")
    if middle and "/" not in f"{head}{tail}" and not is_blank(head) and not is_blank(tail):
        return [("agent", head), ("sub", tail)]
    return [("agent", name)]


def normalize_agent_name(text: str) -> str:
    """An agent's name in canonical form: a slug, or `<a>/sub/<s>` for a sub-agent.

    Raises `InvalidInput` for an invalid name.
    """
    return "/sub/".join(slugify(name) for _, name in agent_levels(text))


def own_scopes(agent: str | None, user: str | None) -> list[str]:
    """The scopes of what an agent and a user know for themselves."""
    agent_scopes = [f"agent/{normalize_agent_name(agent)}"] if agent else []
    return [*agent_scopes, *([f"user/{slugify(user)}"] if user else [])]


def default_read_scopes(
    home: str, agent: str | None, user: str | None, group: str | None = None
) -> list[str]:
    """The patterns that a session reads by default: its home, its project with all topics, its
    agent, its user, its group, its branch and topics beyond the project, and global."""
    project, branch = project_of_scope(home), branch_of_scope(home)
    project_patterns = [f"project/{project}", f"project/{project}/topic/*"] if project else []
    shared = [f"session/{group}"] if group else []
    shared += [f"feature/{branch}"] if branch else []
    own = own_scopes(agent, user)
    return list(dict.fromkeys([home, *project_patterns, *own, *shared, "topic/*", GLOBAL_SCOPE]))


def intersect_patterns(left: Iterable[str], right: Iterable[str]) -> list[str]:
    """Patterns that match the scopes that both lists match."""
    right_patterns = list(right)
    narrower = [
        b if scope_matches(a, b) else a
        for a in left
        for b in right_patterns
        if scope_matches(a, b) or scope_matches(b, a)
    ]
    return list(dict.fromkeys(narrower))


def complete_grants(
    reads: Sequence[str] | None, writes: Sequence[str] | None
) -> tuple[Sequence[str], Sequence[str]]:
    """The grants of a new key: what is not given (None) is as wide as the other, or all (`*`)."""
    everything = ("*",)
    return (
        next(grants for grants in (reads, writes, everything) if grants is not None),
        next(grants for grants in (writes, reads, everything) if grants is not None),
    )


def restrict_to_agent(patterns: Iterable[str], agent: str | None) -> tuple[str, ...]:
    """The patterns without the scopes of agents other than `agent`; unchanged for None.

    An agent keeps its own scope and those below. A sub-agent keeps its own, and its parent's only
    if a pattern names it.
    """
    if agent is None:
        return tuple(patterns)
    restricted = [
        allowed_pattern
        for pattern in patterns
        for allowed_pattern in _restrict_pattern(pattern, f"agent/{agent}")
    ]
    return tuple(dict.fromkeys(restricted))


def restrict_to_user(patterns: Iterable[str], user: str | None) -> tuple[str, ...]:
    """The patterns without the scopes of users other than `user`; unchanged for None."""
    if user is None:
        return tuple(patterns)
    own = f"user/{user}"
    restricted = [
        allowed_pattern
        for pattern in patterns
        for allowed_pattern in (
            [*_SHARED_PATTERNS, "agent/*", own]
            if pattern == "*"
            else [own] * scope_matches(pattern, own)
            if pattern == "user" or pattern.startswith("user/")
            else [pattern]
        )
    ]
    return tuple(dict.fromkeys(restricted))


def _restrict_pattern(pattern: str, agent_scope: str) -> list[str]:
    if pattern == "*":
        return [*_SHARED_PATTERNS, "user/*", f"{agent_scope}/*"]
    if pattern != "agent" and not pattern.startswith("agent/"):
        return [pattern]
    parent = agent_scope.split("/sub/")[0]
    granted = [parent] if pattern in {parent, f"{parent}/*"} and parent != agent_scope else []
    return [*granted, *intersect_patterns([pattern], [f"{agent_scope}/*"])]
