"""Credentials told by their place in a call, a statement or a structure that takes one there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.domain.redaction_assignments import judged_once, named_values
from reverie.domain.redaction_names import TELLING, kind_once, name_kind
from reverie.domain.redaction_patterns import (
    MOST_JUDGED,
    PASSWORD,
    PRIVATE_KEY,
    SECRET,
    Part,
    Span,
    has_digit,
    in_lists,
    letters_of,
    looks_made,
    unspoken,
)
from reverie.domain.redaction_values import Form, is_secret

_QUOTED = re.compile(r"[\"']([^\"'\n]{1,256}+)[\"']")
_ANY = re.compile(r"[\"'](?!\[REDACTED_)(?=[^\"'\n]{0,256}[0-9])([^\"'\n]{6,256}+)[\"']")
_BRACKETS = re.compile(r"\"[^\"\n]{0,256}+\"|'[^'\n]{0,256}+'|[();]")
_GIVEN = r"(?=[^\"'\n;(]{0,120}+(?>(?:\([^\"'\n;(]{0,60}+){0,3})[\"'])"
"""What a call looks like that is given a text: not many calls within before it."""
_REACH = 240
"""Characters of a call that are read for its arguments."""

# Calls that are given a user and a password: the literal that must be there, and the call.
_LOGINS = (
    ("connect", r"connect(?:ion)?\("),
    ("pdo", r"new[ ]pdo\("),
    ("authentication", r"authentication(?:token)?\("),
    ("credential", r"credentials?\("),
    ("auth", r"basic_?auth\w{0,12}(?:\(|[ ](?=[\"']))"),
    ("login", r"login(?:\(|[ ](?=[\"']))"),
    ("username_pw_set", r"username_pw_set\("),
    ("wifi", r"wifi\w{0,8}\.(?:begin|addap|connect)\w{0,8}\("),
    ("mysqli", r"mysqli\("),
    ("keystore", r"keystore\w{0,12}\.load\w{0,8}\("),
)
# Calls that are given a key.
_KEYED = (
    ("jwt", r"jwt\.(?:sign|verify|encode|decode)\("),
    ("hmac", r"hmac\w{0,12}(?:\.new)?\("),
    ("cipheriv", r"cipheriv\("),
    ("aes", r"aes\w{0,4}\.(?:(?:en|de)crypt|new)\("),
    ("signwith", r"signwith\w{0,8}\("),
    ("algoliasearch", r"algoliasearch\("),
    ("cookiestore", r"cookiestore\("),
    ("secretkeyspec", r"secretkeyspec\("),
    ("fernet", r"fernet\("),
    ("pbkdf2", r"pbkdf2\w{0,6}\("),
    ("cookieparser", r"cookieparser\("),
    ("twilio", r"twilio\w{0,8}\("),
)
_CALLS = tuple(
    (kind, literal, re.compile(pattern + _GIVEN))
    for kind, calls in ((PASSWORD, _LOGINS), (SECRET, _KEYED))
    for literal, pattern in calls
)
_LETTERS = frozenset("(\"'" + "".join(literal for _, literal, _ in _CALLS))

# A name, and the value that stands in the element after it.
_ELEMENTS = (
    (
        "</",
        re.compile(
            r"<(?P<name>[\w.\-]{0,24}(?:password|passwd|pwd|secret|token|key)\w{0,12})[ ]"
            r"[^<>\n]{1,100}+>(?P<value>[^<>\n]{4,512}+)</"
        ),
    ),
    (
        "<string>",
        re.compile(
            r"<key>(?P<name>[\w.\-]{1,64}+)</key>\s{0,40}<string>(?P<value>[^<\n]{4,512}+)<"
        ),
    ),
    (
        "<value>",
        re.compile(
            r"name=[\"'](?P<name>[\w.\-]{1,64}+)[\"'][^<>\n]{0,80}+>\s{0,40}"
            r"<value>(?P<value>[^<\n]{4,512}+)<"
        ),
    ),
)
_BYTES = re.compile(r"0x[0-9a-f]{1,2}(?>(?:[,\s]{1,24}+0x[0-9a-f]{1,2}){7,512})")
_ARRAY = re.compile(
    r"(?<!\w)([a-z_]\w{1,80}+)(?:\[[^\]\n]{0,24}+\])?[ ]?:?=[ ]?(?:new[ ])?(?:[\w\[\]]{1,16}+[ ]?)?"
    r"[{\[(]\s{0,16}\Z",
    re.IGNORECASE,
)
_INSERT = re.compile(
    r"insert\s{1,4}into\s{1,4}[\w.`\"\[\]]{1,80}+\s{0,4}\(([^()]{1,600}+)\)\s{0,8}values\s{0,8}"
    r"\(([^()]{1,1200}+)\)"
)
_FIELD = re.compile(r"'(?>(?:[^']|'')*)'|\"[^\"]*+\"|[^,'\"]++")
_JWK = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\\?\"\s{0,4}:\s{0,4}\\?\"(?P<value>[\w\-]{16,2048}+)")
# Keys without marks around them: the beginnings that only private ones have.
_DER = re.compile(
    r"M(?<![A-Za-z0-9+/]M)(?:II[A-Za-z0-9+/]{2,5}(?:ADANBgkqhkiG|BAAK)|IGHAgEA|HcCAQEE)"
    r"[A-Za-z0-9+/=]{40,8192}+"
)


def called(text: str, lower: str) -> Iterator[Span]:
    """Credentials given to a call, a column, an element or an array.

    `lower` is the text in lower case, of the same length.
    """
    letters = letters_of(lower, _LETTERS)
    for kind, literal, pattern in () if letters.isdisjoint("(\"'") else _CALLS:
        if letters.issuperset(literal) and literal in lower:
            yield from _arguments(text, lower, kind, pattern)
    for literal, pattern in _ELEMENTS if "<" in lower else ():
        if literal in lower:
            yield from named_values(text, lower, pattern, [(0, len(lower))], Form.QUOTED)
    if "0x" in lower:
        yield from _arrays(text, lower)
    if "insert" in lower:
        yield from _inserted(text, lower)
    if '"kty' in lower:
        yield from ((*match.span("value"), PRIVATE_KEY) for match in _JWK.finditer(lower))
    if "MII" in text or "MHcCAQEE" in text or "MIGHAgEA" in text:
        yield from ((*match.span(), PRIVATE_KEY) for match in _DER.finditer(text))


def _arguments(text: str, lower: str, kind: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    """The arguments of each call that can be the secret; a call within begins its own."""
    judged: dict[str, list[Part]] = {}
    further: list[Span] = []

    def first(call: re.Match[str]) -> Span | None:
        start = call.end()
        stop = start + _REACH
        if len(judged) >= MOST_JUDGED:
            within = pattern.search(lower, start, stop)
            return _any_given(text, start, within.end() if within else stop)
        seen = text[start:stop]
        found = judged.get(seen)
        if found is None:
            within = pattern.search(lower, start, stop)
            window = seen[: within.end() - start] if within else seen
            judged[seen] = found = _given(window, kind)
        further.extend((start + begin, start + end, kind) for begin, end in found[1:])
        return (start + found[0][0], start + found[0][1], kind) if found else None

    yield from in_lists(pattern, lower, [(0, len(lower))], first)
    yield from further


def _any_given(text: str, start: int, stop: int) -> Span | None:
    """In a flood of calls, from the first text with a digit to the last of those given to one:
    judging them would take long."""
    end = text.find("\n", start, stop)
    spans = [match.span(1) for match in _ANY.finditer(text, start, stop if end < 0 else end)]
    return (spans[0][0], spans[-1][1], SECRET) if spans else None


def _given(window: str, kind: str) -> list[Part]:
    """The secrets among the arguments; a login's first is no password."""
    window = window.partition("\n")[0]
    given = [
        match
        for match in _QUOTED.finditer(window, 0, _closed(window))
        if window[match.start() - 1 : match.start()] != "="
    ]
    first = 1 if kind == PASSWORD and _begins(window, given) else 0
    judge = _password if kind == PASSWORD else _key
    return [match.span(1) for match in given[first:] if judge(match[1])]


def _closed(window: str) -> int:
    """Where the call that the window begins within ends: at its closing bracket, or at `;`."""
    depth = 0
    for match in _BRACKETS.finditer(window):
        if match[0][0] in "\"'":
            continue
        depth += {"(": 1, ")": -1, ";": -99}[match[0]]
        if depth < 0:
            return match.start()
    return len(window)


def _begins(window: str, given: list[re.Match[str]]) -> bool:
    """Whether the first argument is the first text in quotes."""
    return bool(given) and not window[: given[0].start()].strip(" @bN[]")


_NAME = re.compile(r"[A-Za-z]+(?:[-_][A-Za-z]+)*[-_]v?\d{1,3}|[A-Za-z]+(?:[-_][A-Za-z]+)+\d{0,3}")


def _password(value: str) -> bool:
    """Letters and a digit or mark, and neither an address nor the name of a machine."""
    plain = not any(mark in value for mark in ":;=/. ") and not _NAME.fullmatch(value)
    return len(value) >= 6 and plain and is_secret(PASSWORD, value, Form.WRAPPED)


def _key(value: str) -> bool:
    return has_digit(value) and is_secret(SECRET, value, Form.QUOTED) and _unlike_name(value)


def _unlike_name(value: str) -> bool:
    return len(value) >= 8 and (looks_made(value) or unspoken(value))


def _arrays(text: str, lower: str) -> Iterator[Span]:
    """Bytes of a key, one by one."""
    kinds: dict[str, str | None] = {}

    def array(match: re.Match[str]) -> Span | None:
        named = _ARRAY.search(text, max(0, match.start() - 96), match.start())
        secret = named and kind_once(named[1], kinds) and len(set(match[0].split(","))) > 6
        return (*match.span(), SECRET) if secret else None

    return in_lists(_BYTES, lower, [(0, len(lower))], array)


def _inserted(text: str, lower: str) -> Iterator[Span]:
    """Values of the columns that are named as secrets."""
    named: dict[str, list[str | None]] = {}
    judged: dict[tuple[str, str], str | None] = {}
    for match in _INSERT.finditer(lower):
        kinds = _columns(match[1], named)
        if not any(kinds):
            continue
        fields = _FIELD.finditer(text, *match.span(2))
        for kind, (start, end) in zip(kinds, _between_commas(fields), strict=False):
            if kind and (found := judged_once(kind, text[start:end], Form.QUOTED, judged)):
                yield start, end, found


def _columns(columns: str, named: dict[str, list[str | None]]) -> list[str | None]:
    """The kind of secret that each column promises; of too many lists, any."""
    if columns not in named:
        if len(named) >= MOST_JUDGED:
            kind = SECRET if TELLING.search(columns) else None
            return [kind] * (columns.count(",") + 1)
        named[columns] = [name_kind(name.strip(' `"[]\n\t')) for name in columns.split(",")]
    return named[columns]


def _between_commas(fields: Iterator[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Where the fields stand without their quotes; blanks before a quoted one are none."""
    for field in fields:
        if field[0].strip():
            quoted = field[0][0] in "'\""
            yield field.start() + quoted, field.end() - quoted
