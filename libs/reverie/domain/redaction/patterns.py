"""Patterns for private keys, URL passwords and headers; helpers of all redaction rules.

Every expression starts with a literal and is bounded, so that matching takes linear time.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator

SecretSpan = tuple[int, int, str]
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

MAX_JUDGED = 1_000
"""Values of a kind that are judged one by one in a text. Beyond them whatever stands in such a
place is taken for a secret: a text of that many is made to be slow."""
LIST_THRESHOLD, LIST_GAP = 2048, 128
"""Credentials in a text from which they are a list, and characters between two of a list, which
go with them."""
PLACEHOLDER_PREFIX = "[REDACTED"
"""What placeholders begin with."""

ValueCheck = Callable[[str], bool]
MatchJudge = Callable[[re.Match[str]], SecretSpan | None]

_ALNUM = "A-Za-z0-9"
_CHAR_CLASS_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
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
    changes = len(_CHAR_CLASS_RUN.findall(plain)) / len(plain)
    return changes >= (0.3 if digits >= 2 else 0.42)


# Each letter, then those that follow it in words of English and of names in programs.
_LETTER_FOLLOWERS = (
    "abcdfgiklmnprstuvwxy baceijlorsuy cacefhiklorstuy dabcdefilmnorstu "
    "eabcdefgilmnopqrstuvwxy faefilnorstuy gaeghilmnorstu haeilmorstu "
    "iabcdefgklmnoprstvxz je keils lacdeilopstuvy mabeilmopstuy nabcdefghiklmnoprstuvy "
    "oabcdefgiklmnoprstuvwx padehiloprstuy qu rabcdefgiklmnoprstuvwy sacefhiklmnopqstuwy "
    "tacdefhilmoprstuwy uabcdefgilmnoprst vaeio waehinors xceipt yeimnpst zaei "
)
_COMMON_BIGRAMS = frozenset(
    part[0] + second for part in _LETTER_FOLLOWERS.split() for second in part[1:]
)
_LETTER_RUN = re.compile(r"[a-z]{3,}")


def is_unpronounceable(text: str) -> bool:
    """Whether the letters follow each other as in no word: a quarter of the pairs are unheard of.

    Nine of ten random runs of ten letters are told so, and one word in a thousand.
    """
    runs = _LETTER_RUN.findall(text[:256].lower())
    pairs = [run[offset : offset + 2] for run in runs for offset in range(len(run) - 1)]
    rare = sum(pair not in _COMMON_BIGRAMS for pair in pairs)
    return len(pairs) >= 5 and rare >= 2 and rare * 4 >= len(pairs)


def looks_generated(text: str) -> bool:
    """Whether a text is random or holds one piece too long to be a word of a name."""
    return looks_random(text) or any(
        len(piece) >= 24 or (len(piece) >= 16 and has_digit(piece))
        for piece in _SEGMENT.findall(text)
    )


def has_digit(text: str) -> bool:
    """Whether there is an ASCII digit in it."""
    return _DIGIT.search(text) is not None


TextRange = tuple[int, int]
"""Where a part of a text begins and ends."""
_LIST_STEP, _LIST_LOOKAHEAD = 64, 2048
"""Characters from one credential of a list to where another is sought, and how far."""


def find_spans(
    pattern: re.Pattern[str], text: str, ranges: Iterable[TextRange], judge: MatchJudge
) -> Iterator[SecretSpan]:
    """The credentials among the matches in parts of a text.

    Past the first few thousand they are a list: what stands between two near each other is taken
    with them, and is not searched.
    """
    count = 0
    for position, stop in ranges:
        list_end = -LIST_GAP
        while match := pattern.search(text, position, stop):
            position, span, count = match.end(), judge(match), count + 1
            if not span:
                continue
            start, end, kind = span
            if count > LIST_THRESHOLD:
                start = list_end if start - list_end < LIST_GAP else start
                list_end = end = _end_of_list(pattern, text, end, stop, judge)
                position = max(position, end)
            yield start, end, kind


def _end_of_list(
    pattern: re.Pattern[str], text: str, end: int, stop: int, judge: MatchJudge
) -> int:
    """Where a list ends, each of which begins near the end of one before it."""
    while match := pattern.search(text, end + _LIST_STEP, min(stop, end + _LIST_LOOKAHEAD)):
        span = judge(match) if match.start() < end + LIST_GAP else None
        if not span or span[0] - end >= LIST_GAP:
            break
        end = span[1]
    return end


def memoize_check(check: ValueCheck) -> ValueCheck:
    """The check, made of each text once; of very many, it holds of any other."""
    cache: dict[str, bool] = {}

    def holds(text: str) -> bool:
        result = cache.get(text)
        if result is None:
            result = len(cache) >= MAX_JUDGED or cache.setdefault(text, check(text))
        return result

    return holds


def present_letters(text: str, letters: Iterable[str]) -> frozenset[str]:
    """Those of the letters that are in the text: literals with others need not be sought."""
    return frozenset(letter for letter in letters if letter in text)


_CONTEXT_CHARS, _MAX_RANGES = 1024, 256


def ranges_around(literal: str, text: str) -> Iterator[TextRange]:
    """The parts of a text around a literal, farther than an expression looks from it.

    They are apart; where there are many, the last is all of the rest.
    """
    begin, count = text.find(literal), 0
    while begin >= 0:
        last, following = begin, begin
        while 0 <= following - last < 2 * _CONTEXT_CHARS and count < _MAX_RANGES:
            last = text.rfind(literal, following, following + _CONTEXT_CHARS)
            following = text.find(literal, last + 1)
        count += 1
        yield (
            max(0, begin - _CONTEXT_CHARS),
            last + _CONTEXT_CHARS if count < _MAX_RANGES else len(text),
        )
        begin = following if count < _MAX_RANGES else -1


_BEGIN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# What stands between the lines of a key: breaks written out, quotes, diff and line-number marks.
_KEY_GAP = r"(?>(?:\s|\\[nrt]|[\"'`+>|,#*\-\\]|\d{1,6}→)*)"
_KEY_HEADER = r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{0,120}+)"
_KEY_BODY = re.compile(rf"(?>(?:{_KEY_GAP}(?:{_KEY_HEADER}|[A-Za-z0-9+/=]{{16,}}+))*)")
_KEY_TAIL = re.compile(
    rf"{_KEY_GAP}[A-Za-z0-9+/]{{1,15}}={{0,2}}(?=\s*(?:$|\.\.\.|…|[\"'`]|-----END))"
)
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_MIN_KEY, _MAX_KEY = 16, 64 * 1024


_PUTTY_HEADER = "PuTTY-User-Key-File-"
_PUTTY_MAX_DISTANCE = 8192
_PUTTY_KEY = re.compile(
    r"Private-Lines:[ ]?\d{1,4}\s{1,4}((?>(?:[A-Za-z0-9+/=]{1,80}+(?:\s{1,4}|\Z)){1,400}))"
)


def find_private_keys(text: str) -> Iterator[SecretSpan]:
    """PEM private keys, whole or cut off, with real or written-out line breaks.

    A marker without key material after it (in code that looks for keys) is left alone.
    """
    if _PUTTY_HEADER in text:
        yield from _find_putty_keys(text)
    if "PRIVATE KEY" not in text:
        return
    begins = list(_BEGIN_KEY.finditer(text))
    limits = [match.start() for match in begins[1:]] + [len(text)]
    for index, (begin, limit) in enumerate(zip(begins, limits, strict=False)):
        length = limit - begin.end()
        if length < _MIN_KEY:
            continue
        if index >= LIST_THRESHOLD and length < LIST_GAP:
            end: int | None = limit
        else:
            end = _find_key_end(text, begin.end(), begin.end() + min(length, _MAX_KEY))
        if end is not None:
            yield begin.start(), end, PRIVATE_KEY


def _find_putty_keys(text: str) -> Iterator[SecretSpan]:
    head, position = -_PUTTY_MAX_DISTANCE, 0
    for match in _PUTTY_KEY.finditer(text):
        head = max(head, text.rfind(_PUTTY_HEADER, position, match.start()))
        position = match.start()
        if position - head < _PUTTY_MAX_DISTANCE:
            yield match.start(1), match.start(1) + len(match[1].rstrip()), PRIVATE_KEY


def _find_key_end(text: str, start: int, limit: int) -> int | None:
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
_TEMPLATE_REFERENCE = re.compile(r"[$%#&]?[{<(\[].*|\$\w+|%\w*%?|[*x.…X]+|REDACTED")


_URL_TOKEN = re.compile(r"://([^\s/@:\"'`<>]{16,256}+)@")


def find_url_passwords(text: str) -> Iterator[SecretSpan]:
    """Passwords between `://user:` and `@`, and tokens for a user, in an address of any scheme."""
    if "://" not in text:
        return
    users: list[SecretSpan] = []
    is_random, is_generated = memoize_check(looks_random), memoize_check(looks_generated)

    def password(match: re.Match[str]) -> SecretSpan | None:
        user, secret = match[1], match[2].rpartition("@")[0]
        if not secret or secret == user or _TEMPLATE_REFERENCE.fullmatch(secret):
            return None
        if len(user) >= 20 and is_random(user):
            users.append((*match.span(1), TOKEN))
        if _TEMPLATE_LOGIN.fullmatch(f"{user}:{secret}"):
            return None
        return match.start(2), match.start(2) + len(secret), URL_PASSWORD

    def token(match: re.Match[str]) -> SecretSpan | None:
        is_token = is_generated(match[1]) and not _TEMPLATE_REFERENCE.fullmatch(match[1])
        return (*match.span(1), TOKEN) if is_token else None

    whole_text = [(0, len(text))]
    yield from find_spans(_URL_LOGIN, text, whole_text, password)
    yield from users
    yield from find_spans(_URL_TOKEN, text, whole_text, token)


_BEARER = re.compile(r"bearer(?:\s|%20|\+){1,4}([a-z0-9._~+/=\-]{12,}+)")
_BASIC = re.compile(r"basic\s{1,4}([a-z0-9+/]{8,}+={0,2})")
_HEADER_TOKEN = re.compile(
    r"authorization[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}"
    r"(?:[a-z]{2,12}\s{1,4})?"
    r"([a-z0-9._~+/=\-]{8,}+)"
)


def find_header_credentials(text: str, lower: str) -> Iterator[SecretSpan]:
    """Credentials after `Bearer`, `Basic`, `Authorization:`, and in cookies.

    `lower` is the text in lower case, of the same length.
    """
    if "bearer" in lower:
        yield from _find_group_spans(text, lower, _BEARER, TOKEN, _is_bearer_value)
    if "basic" in lower:
        yield from _find_group_spans(text, lower, _BASIC, BASIC_AUTH, _is_basic)
    if "authorization" in lower:
        yield from _find_group_spans(text, lower, _HEADER_TOKEN, TOKEN, _is_bearer_value)
    if "cookie" in lower:
        yield from _find_cookies(text, lower)


_COOKIE_HEADER = re.compile(r"cookie[\"']?:[ ]?([^\n]{8,4096}+)")
_COOKIE = re.compile(r"(?:sess|sid|auth|token|jwt)[\w.\-]{0,40}=(?:s%3a)?([\w.~%+/\-]{16,2048}+)")


def _find_cookies(text: str, lower: str) -> Iterator[SecretSpan]:
    lines = (line.span(1) for line in _COOKIE_HEADER.finditer(lower))
    yield from find_spans(_COOKIE, lower, lines, _judge_first_group(text, TOKEN, looks_random))


def _find_group_spans(
    text: str, lower: str, pattern: re.Pattern[str], kind: str, check: ValueCheck
) -> Iterator[SecretSpan]:
    return find_spans(pattern, lower, [(0, len(lower))], _judge_first_group(text, kind, check))


def _judge_first_group(text: str, kind: str, check: ValueCheck) -> MatchJudge:
    """Takes the first group of a match for one of that kind where the check holds of it."""
    passes = memoize_check(check)

    def judge(match: re.Match[str]) -> SecretSpan | None:
        start, end = match.span(1)
        return (start, end, kind) if passes(text[start:end]) else None

    return judge


def _is_bearer_value(value: str) -> bool:
    return looks_random(value) or (len(value) >= 16 and looks_generated(value))


def _is_basic(value: str) -> bool:
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in plain and plain.isprintable()
