"""Shapes of credentials that can be told by their form alone: what to find, and where it ends.

Every expression starts with a literal, so that the search skips ahead, and either cannot start
inside what it would consume or is bounded: the time is linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Span = tuple[int, int, str]
"""Start and end of a credential in the text, and its kind."""

API_KEY = "API_KEY"
AWS_KEY = "AWS_KEY"
BASIC_AUTH = "BASIC_AUTH"
JWT = "JWT"
PASSWORD = "PASSWORD"  # noqa: S105 (these are names of kinds)
PRIVATE_KEY = "PRIVATE_KEY"
SECRET = "SECRET"  # noqa: S105
TOKEN = "TOKEN"  # noqa: S105
URL_PASSWORD = "URL_PASSWORD"  # noqa: S105
WEBHOOK = "WEBHOOK"

Check = Callable[[str], bool]

_ALNUM = "A-Za-z0-9"
_SAFE = r"A-Za-z0-9_\-"
_RUNS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_DIGIT = re.compile("[0-9]")
_FILLER = re.compile(r"[xX_.\-]*")
_SEGMENT = re.compile(rf"[{_ALNUM}]+")


@dataclass(frozen=True)
class Shape:
    """A credential that begins with a literal; group 1 is the part to take out."""

    kind: str
    prefix: str
    pattern: re.Pattern[str]
    check: Check | None = None


def looks_random(text: str) -> bool:
    """Whether letters and digits mix as they do in generated keys, and not as in names.

    Counts the changes between lower case, upper case and digits: a base64 key changes at more
    than half of its characters, a camelCase name at about a quarter.
    """
    plain = "".join(_SEGMENT.findall(text))
    if len(plain) < 8:
        return False
    digits = len(_DIGIT.findall(plain))
    if _HEX.fullmatch(plain):
        return 0 < digits < len(plain)
    changes = len(_RUNS.findall(plain)) / len(plain)
    return changes >= (0.3 if digits >= 2 else 0.42)


def looks_made(text: str) -> bool:
    """Whether a text is random or holds one piece too long to be a word of a name."""
    return looks_random(text) or any(
        len(piece) >= 24 or (len(piece) >= 16 and _has_digit(piece))
        for piece in _SEGMENT.findall(text)
    )


def _has_digit(text: str) -> bool:
    return _DIGIT.search(text) is not None


def _pattern(prefix: str, rest: str) -> re.Pattern[str]:
    # After `\n` written out, as in JSON, the letter n belongs to the escape.
    head = re.escape(prefix)
    return re.compile(rf"({head}(?:(?<![{_ALNUM}]{head})|(?<=\\[nrt]{head})){rest})")


def _shape(
    kind: str, prefixes: str, chars: str = _ALNUM, least: int = 20, check: Check | None = None
) -> Iterator[Shape]:
    for prefix in prefixes.split():
        yield Shape(kind, prefix, _pattern(prefix, rf"[{chars}]{{{least},}}+"), check)


def _shapes() -> Iterator[Shape]:
    yield from _shape(API_KEY, "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1-", _SAFE, 16)
    yield from _shape(API_KEY, "sk-", _SAFE, 20, looks_made)
    yield from _shape(API_KEY, "rv_", _SAFE + ".", 16, looks_made)
    yield from _shape(AWS_KEY, "AKIA ASIA ABIA ACCA", "A-Z0-9", 16)
    yield from _shape(TOKEN, "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM + "_", 20, looks_made)
    yield from _shape(TOKEN, "github_pat_", _ALNUM + "_", 20)
    yield from _shape(TOKEN, "glpat- glptt- glrt- gldt- glcbt- glft- glsoat-", _SAFE + ".", 16)
    yield from _shape(
        TOKEN, "xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", _SAFE, 10, _has_digit
    )
    yield from _shape(API_KEY, "sk_live_ sk_test_ rk_live_ rk_test_", _ALNUM, 10)
    yield from _shape(SECRET, "whsec_", _ALNUM + "+/=", 16)
    yield from _shape(API_KEY, "AIza", _SAFE, 30, looks_made)
    yield from _shape(TOKEN, "ya29. 1//0", _SAFE, 20, looks_made)
    yield from _shape(SECRET, "GOCSPX-", _SAFE, 20)
    yield from _shape(TOKEN, "npm_", _ALNUM, 30)
    yield from _shape(TOKEN, "pypi-", _SAFE, 40, looks_made)
    yield from _shape(TOKEN, "hf_", _ALNUM, 28)
    yield from _shape(TOKEN, "doo_v1_ dop_v1_ dor_v1_", "0-9a-f", 40)
    yield from _shape(API_KEY, "SK dapi key-", "0-9a-f", 32)
    yield from _shape(TOKEN, "shpat_ shpca_ shppa_ shpss_", "0-9a-fA-F", 32)
    yield from _shape(TOKEN, "sq0atp- sq0csp-", _SAFE, 22)
    yield from _shape(
        API_KEY, "gsk_ r8_ lin_api_ nvapi- pplx- xai- tvly- sbp_ figd_", _SAFE, 28, looks_made
    )
    yield from _shape(
        TOKEN, "dckr_pat_ hvs. hvb. glsa_ NRAK- PMAK- tskey- sntrys_", _SAFE, 20, looks_made
    )
    yield from _shape(
        TOKEN, "dp.pt. dp.st. pul- ntn_ CFPAT- AKCp fio-u- dt0c01.", _SAFE + ".", 24, looks_made
    )
    yield from _shape(TOKEN, "ops_eyJ EAACEdEose0cBA glagent- sl.", _SAFE, 24, looks_made)
    yield from _shape(
        API_KEY, "LTAI AKID rzp_live_ rzp_test_ NRII- secret_", _ALNUM, 14, looks_made
    )
    yield from _shape(TOKEN, "ATBB ATCTT3", _SAFE + "=", 20, looks_made)
    yield from _shape(TOKEN, "rubygems_", "0-9a-f", 48)
    yield from _shape(TOKEN, "ATATT3", _SAFE + "=", 50)
    yield from _shape(PRIVATE_KEY, "AGE-SECRET-KEY-1", "A-Z0-9", 40)
    yield from _shape(PRIVATE_KEY, "SA SU SO SN SC SX", "A-Z2-7", 56)
    yield Shape(TOKEN, "SG.", _pattern("SG.", rf"[{_SAFE}]{{16,}}+\.[{_SAFE}]{{16,}}+"))
    payload = rf"[{_SAFE}]{{8,}}+\.eyJ[{_SAFE}]{{4,}}+"
    yield Shape(JWT, "eyJ", _pattern("eyJ", rf"{payload}(?:\.[{_SAFE}]*+)?"))
    slack = r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/\-]{20,}+)"
    yield Shape(WEBHOOK, "hooks.slack.com/", re.compile(slack), _has_digit)
    # A bot's number, then its token; a bot's id in base64, the time, the signature.
    yield Shape(
        TOKEN, ":AA", re.compile(rf"(?<!\d)(\d{{8,10}}:AA[{_SAFE}]{{32,34}}+)(?![{_SAFE}])")
    )
    parts = rf"[MNO][{_SAFE}]{{22,26}}\.[{_SAFE}]{{6}}\.[{_SAFE}]{{27,38}}+"
    bot = rf"(?<![{_SAFE}.])({parts})(?![{_SAFE}.])"
    yield Shape(TOKEN, ".", re.compile(bot), looks_random)
    teams = r"webhook\.office\.com/webhookb2/([\w@/\-]{40,}+)"
    yield Shape(WEBHOOK, "webhook.office.com/", re.compile(teams), _has_digit)
    discord = r"/api/webhooks/(\d{10,24}/[\w\-]{40,}+)"
    yield Shape(WEBHOOK, "/api/webhooks/", re.compile(discord))


SHAPES = tuple(_shapes())


def shaped(text: str) -> Iterator[Span]:
    """Credentials told by the literal they begin with."""
    for shape in SHAPES:
        if shape.prefix not in text:
            continue
        for match in shape.pattern.finditer(text):
            body = match[1].removeprefix(shape.prefix)
            if not _FILLER.fullmatch(body) and (shape.check is None or shape.check(body)):
                yield match.start(1), match.end(1), shape.kind


_BEGIN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# What stands between the lines of a key: breaks written out, quotes, diff and line-number marks.
_GAP = r"(?:\s|\\[nrt]|[\"'`+>|,#*\-\\]|\d{1,6}→)*+"
_HEADER = r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{0,120}+)"
_KEY_BODY = re.compile(rf"(?:{_GAP}(?:{_HEADER}|[A-Za-z0-9+/=]{{16,}}+))*+")
_KEY_TAIL = re.compile(rf"{_GAP}[A-Za-z0-9+/]{{1,15}}={{0,2}}(?=\s*(?:$|\.\.\.|…|[\"'`]|-----END))")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_MAX_KEY = 64 * 1024


def private_keys(text: str) -> Iterator[Span]:
    """PEM private keys, whole or cut off, with real or written-out line breaks.

    A marker without key material after it (in code that looks for keys) is left alone.
    """
    if "PRIVATE KEY" not in text:
        return
    begins = list(_BEGIN_KEY.finditer(text))
    limits = [match.start() for match in begins[1:]] + [len(text)]
    for begin, limit in zip(begins, limits, strict=False):
        end = _key_end(text, begin.end(), min(limit, begin.end() + _MAX_KEY))
        if end is not None:
            yield begin.start(), end, PRIVATE_KEY


def _key_end(text: str, start: int, limit: int) -> int | None:
    end = _END_KEY.search(text, start, limit)
    if end and _KEY_LINE.search(text, start, end.start()):
        return end.end()
    body = _KEY_BODY.match(text, start, limit)
    if end or body is None or not _KEY_LINE.search(text, start, body.end()):
        return None
    tail = _KEY_TAIL.match(text, body.end(), limit)
    return tail.end() if tail else body.end()


_URL_LOGIN = re.compile(r"://([^\s/@:\"'`<>]{0,128}+):([^\s/\"'`<>]{1,256}+)")
_TEMPLATE_LOGIN = re.compile(
    r"(?:user(?:name)?|usr|name|login|me):(?:pass(?:w(?:or)?d)?|pwd|pw|secret|token)", re.IGNORECASE
)
_REFERENCE = re.compile(r"[$%#&]?[{<(\[].*|\$\w+|%\w*%?|[*x.…X]+|REDACTED")


_URL_TOKEN = re.compile(r"://([^\s/@:\"'`<>]{16,256}+)@")


def url_passwords(text: str) -> Iterator[Span]:
    """Passwords between `://user:` and `@`, and tokens for a user, in an address of any scheme."""
    for match in _URL_LOGIN.finditer(text):
        password, _, _ = match[2].rpartition("@")
        if not password or _REFERENCE.fullmatch(password):
            continue
        if not _TEMPLATE_LOGIN.fullmatch(f"{match[1]}:{password}"):
            yield match.start(2), match.start(2) + len(password), URL_PASSWORD
    for match in _URL_TOKEN.finditer(text):
        if looks_made(match[1]) and not _REFERENCE.fullmatch(match[1]):
            yield *match.span(1), TOKEN


_BEARER = re.compile(r"bearer(?:\s|%20|\+){1,4}([a-z0-9._~+/=\-]{12,}+)")
_BASIC = re.compile(r"basic\s{1,4}([a-z0-9+/]{8,}+={0,2})")
_HEADER_TOKEN = re.compile(
    r"authorization[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}"
    r"(?:(?:bearer|token|basic|digest|apikey|key|splunk|bot|ghp?)\s{1,4})?"
    r"([a-z0-9._~+/=\-]{8,}+)"
)


def headers(text: str, lower: str) -> Iterator[Span]:
    """Credentials after `Bearer`, `Basic` and `Authorization:`.

    `lower` is the text in ASCII lower case, of the same length.
    """
    if "bearer" in lower:
        yield from _spans(text, _BEARER.finditer(lower), TOKEN, _bearer_value)
    if "basic" in lower:
        yield from _spans(text, _BASIC.finditer(lower), BASIC_AUTH, _is_basic)
    if "authorization" in lower:
        yield from _spans(text, _HEADER_TOKEN.finditer(lower), TOKEN, _bearer_value)


def _spans(text: str, matches: Iterator[re.Match[str]], kind: str, check: Check) -> Iterator[Span]:
    for match in matches:
        start, end = match.span(1)
        if check(text[start:end]):
            yield start, end, kind


def _bearer_value(value: str) -> bool:
    return looks_random(value) or (len(value) >= 16 and looks_made(value))


def _is_basic(value: str) -> bool:
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in plain and plain.isprintable()
