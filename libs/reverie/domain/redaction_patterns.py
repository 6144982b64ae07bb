"""Shapes of credentials that can be told by their form alone: what to find, and where it ends.

Every expression starts with a literal, so that the search skips ahead, and either cannot start
inside what it would consume or is bounded: the time is linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator

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

MOST_JUDGED = 1_000
"""Values of a kind that are judged one by one in a text. Beyond them whatever stands in such a
place is taken for a secret: a text of that many is made to be slow."""
LISTED, BESIDE = 2048, 128
"""Credentials in a text from which they are a list, and characters between two of a list, which
go with them."""
REDACTED = "[REDACTED"
"""What placeholders begin with."""

Check = Callable[[str], bool]
Judge = Callable[[re.Match[str]], Span | None]

_ALNUM = "A-Za-z0-9"
_RUNS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_DIGIT = re.compile("[0-9]")
_SEGMENT = re.compile(rf"[{_ALNUM}]+")


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


# Each letter, then those that follow it in words of English and of names in programs.
_FOLLOWED = (
    "abcdfgiklmnprstuvwxy baceijlorsuy cacefhiklorstuy dabcdefilmnorstu "
    "eabcdefgilmnopqrstuvwxy faefilnorstuy gaeghilmnorstu haeilmorstu "
    "iabcdefgklmnoprstvxz je keils lacdeilopstuvy mabeilmopstuy nabcdefghiklmnoprstuvy "
    "oabcdefgiklmnoprstuvwx padehiloprstuy qu rabcdefgiklmnoprstuvwy sacefhiklmnopqstuwy "
    "tacdefhilmoprstuwy uabcdefgilmnoprst vaeio waehinors xceipt yeimnpst zaei "
)
_SPOKEN = frozenset(part[0] + second for part in _FOLLOWED.split() for second in part[1:])
_LETTERS = re.compile(r"[a-z]{3,}")


def unspoken(text: str) -> bool:
    """Whether the letters follow each other as in no word: a quarter of the pairs are unheard of.

    Nine of ten random runs of ten letters are told so, and one word in a thousand.
    """
    runs = _LETTERS.findall(text[:256].lower())
    pairs = [run[at : at + 2] for run in runs for at in range(len(run) - 1)]
    rare = sum(pair not in _SPOKEN for pair in pairs)
    return len(pairs) >= 5 and rare >= 2 and rare * 4 >= len(pairs)


def looks_made(text: str) -> bool:
    """Whether a text is random or holds one piece too long to be a word of a name."""
    return looks_random(text) or any(
        len(piece) >= 24 or (len(piece) >= 16 and has_digit(piece))
        for piece in _SEGMENT.findall(text)
    )


def has_digit(text: str) -> bool:
    """Whether there is an ASCII digit in it."""
    return _DIGIT.search(text) is not None


Part = tuple[int, int]
"""Where a part of a text begins and ends."""
_JUMP, _SIGHT = 64, 2048
"""Characters from one credential of a list to where another is sought, and how far."""


def in_lists(
    pattern: re.Pattern[str], text: str, parts: Iterable[Part], judge: Judge
) -> Iterator[Span]:
    """The credentials among the matches in parts of a text.

    Past the first few thousand they are a list: what stands between two near each other is taken
    with them, and is not searched.
    """
    count = 0
    for position, stop in parts:
        over = -BESIDE
        while match := pattern.search(text, position, stop):
            position, span, count = match.end(), judge(match), count + 1
            if not span:
                continue
            start, end, kind = span
            if count > LISTED:
                start = over if start - over < BESIDE else start
                over = end = _end_of_list(pattern, text, end, stop, judge)
                position = max(position, end)
            yield start, end, kind


def _end_of_list(pattern: re.Pattern[str], text: str, end: int, stop: int, judge: Judge) -> int:
    """Where a list ends, each of which begins near the end of one before it."""
    while match := pattern.search(text, end + _JUMP, min(stop, end + _SIGHT)):
        span = judge(match) if match.start() < end + BESIDE else None
        if not span or span[0] - end >= BESIDE:
            break
        end = span[1]
    return end


def once(check: Check) -> Check:
    """The check, made of each text once; of very many, it holds of any other."""
    seen: dict[str, bool] = {}

    def holds(text: str) -> bool:
        found = seen.get(text)
        if found is None:
            found = len(seen) >= MOST_JUDGED or seen.setdefault(text, check(text))
        return found

    return holds


def letters_of(text: str, asked: Iterable[str]) -> frozenset[str]:
    """Those of the letters that are in the text: literals with others need not be sought."""
    return frozenset(letter for letter in asked if letter in text)


_REACH, _APART = 1024, 256


def near(literal: str, text: str) -> Iterator[Part]:
    """The parts of a text around a literal, farther than an expression looks from it.

    They are apart; where there are many, the last is all of the rest.
    """
    begin, parts = text.find(literal), 0
    while begin >= 0:
        last, following = begin, begin
        while 0 <= following - last < 2 * _REACH and parts < _APART:
            last = text.rfind(literal, following, following + _REACH)
            following = text.find(literal, last + 1)
        parts += 1
        yield max(0, begin - _REACH), last + _REACH if parts < _APART else len(text)
        begin = following if parts < _APART else -1


_BEGIN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# What stands between the lines of a key: breaks written out, quotes, diff and line-number marks.
_GAP = r"(?>(?:\s|\\[nrt]|[\"'`+>|,#*\-\\]|\d{1,6}→)*)"
_HEADER = r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{0,120}+)"
_KEY_BODY = re.compile(rf"(?>(?:{_GAP}(?:{_HEADER}|[A-Za-z0-9+/=]{{16,}}+))*)")
_KEY_TAIL = re.compile(rf"{_GAP}[A-Za-z0-9+/]{{1,15}}={{0,2}}(?=\s*(?:$|\.\.\.|…|[\"'`]|-----END))")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_LEAST_KEY, _MAX_KEY = 16, 64 * 1024


_PUTTY = "PuTTY-User-Key-File-"
_PUTTY_FAR = 8192
_PUTTY_KEY = re.compile(
    r"Private-Lines:[ ]?\d{1,4}\s{1,4}((?>(?:[A-Za-z0-9+/=]{1,80}+(?:\s{1,4}|\Z)){1,400}))"
)


def private_keys(text: str) -> Iterator[Span]:
    """PEM private keys, whole or cut off, with real or written-out line breaks.

    A marker without key material after it (in code that looks for keys) is left alone.
    """
    if _PUTTY in text:
        yield from _putty_keys(text)
    if "PRIVATE KEY" not in text:
        return
    begins = list(_BEGIN_KEY.finditer(text))
    limits = [match.start() for match in begins[1:]] + [len(text)]
    for place, (begin, limit) in enumerate(zip(begins, limits, strict=False)):
        length = limit - begin.end()
        if length < _LEAST_KEY:
            continue
        if place >= LISTED and length < BESIDE:
            end: int | None = limit
        else:
            end = _key_end(text, begin.end(), begin.end() + min(length, _MAX_KEY))
        if end is not None:
            yield begin.start(), end, PRIVATE_KEY


def _putty_keys(text: str) -> Iterator[Span]:
    head, position = -_PUTTY_FAR, 0
    for match in _PUTTY_KEY.finditer(text):
        head = max(head, text.rfind(_PUTTY, position, match.start()))
        position = match.start()
        if position - head < _PUTTY_FAR:
            yield match.start(1), match.start(1) + len(match[1].rstrip()), PRIVATE_KEY


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
    if "://" not in text:
        return
    users: list[Span] = []
    random, made = once(looks_random), once(looks_made)

    def password(match: re.Match[str]) -> Span | None:
        user, given = match[1], match[2].rpartition("@")[0]
        if not given or given == user or _REFERENCE.fullmatch(given):
            return None
        if len(user) >= 20 and random(user):
            users.append((*match.span(1), TOKEN))
        if _TEMPLATE_LOGIN.fullmatch(f"{user}:{given}"):
            return None
        return match.start(2), match.start(2) + len(given), URL_PASSWORD

    def token(match: re.Match[str]) -> Span | None:
        holds = made(match[1]) and not _REFERENCE.fullmatch(match[1])
        return (*match.span(1), TOKEN) if holds else None

    whole = [(0, len(text))]
    yield from in_lists(_URL_LOGIN, text, whole, password)
    yield from users
    yield from in_lists(_URL_TOKEN, text, whole, token)


_BEARER = re.compile(r"bearer(?:\s|%20|\+){1,4}([a-z0-9._~+/=\-]{12,}+)")
_BASIC = re.compile(r"basic\s{1,4}([a-z0-9+/]{8,}+={0,2})")
_HEADER_TOKEN = re.compile(
    r"authorization[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}"
    r"(?:[a-z]{2,12}\s{1,4})?"
    r"([a-z0-9._~+/=\-]{8,}+)"
)


def headers(text: str, lower: str) -> Iterator[Span]:
    """Credentials after `Bearer`, `Basic`, `Authorization:`, and in cookies.

    `lower` is the text in lower case, of the same length.
    """
    if "bearer" in lower:
        yield from _spans(text, lower, _BEARER, TOKEN, _bearer_value)
    if "basic" in lower:
        yield from _spans(text, lower, _BASIC, BASIC_AUTH, _is_basic)
    if "authorization" in lower:
        yield from _spans(text, lower, _HEADER_TOKEN, TOKEN, _bearer_value)
    if "cookie" in lower:
        yield from _cookies(text, lower)


_COOKIES = re.compile(r"cookie[\"']?:[ ]?([^\n]{8,4096}+)")
_COOKIE = re.compile(r"(?:sess|sid|auth|token|jwt)[\w.\-]{0,40}=(?:s%3a)?([\w.~%+/\-]{16,2048}+)")


def _cookies(text: str, lower: str) -> Iterator[Span]:
    lines = (line.span(1) for line in _COOKIES.finditer(lower))
    yield from in_lists(_COOKIE, lower, lines, _holding(text, TOKEN, looks_random))


def _spans(
    text: str, lower: str, pattern: re.Pattern[str], kind: str, check: Check
) -> Iterator[Span]:
    return in_lists(pattern, lower, [(0, len(lower))], _holding(text, kind, check))


def _holding(text: str, kind: str, check: Check) -> Judge:
    """Takes the first group of a match for one of that kind where the check holds of it."""
    holds = once(check)

    def judge(match: re.Match[str]) -> Span | None:
        start, end = match.span(1)
        return (start, end, kind) if holds(text[start:end]) else None

    return judge


def _bearer_value(value: str) -> bool:
    return looks_random(value) or (len(value) >= 16 and looks_made(value))


def _is_basic(value: str) -> bool:
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in plain and plain.isprintable()
