"""Finds credentials with a known format, such as tokens of a provider with a fixed prefix."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from string import ascii_letters, digits

from reverie.domain.redaction.matching import (
    AWS_KEY,
    BASIC_AUTH,
    LIST_GAP,
    LIST_THRESHOLD,
    MAX_JUDGED,
    PRIVATE_KEY,
    TOKEN,
    URL_PASSWORD,
    LiteralStarts,
    MatchJudge,
    RedactionRule,
    SecretSpan,
    TextRange,
    ValueCheck,
    find_spans,
    load_allowlist,
    load_rules,
    memoize_check,
    ranges_around,
)
from reverie.domain.redaction.randomness import (
    has_digit,
    looks_generated,
    looks_opaque,
    looks_random,
    mixes_cases,
)
from reverie.domain.redaction.value_checks import is_aws_secret

_BEGIN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# Text between the lines of a key: escaped line breaks, quotes, diff and line-number marks.
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

_JWK = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\\?\"\s{0,4}:\s{0,4}\\?\"(?P<value>[\w\-]{16,2048}+)")
# Keys without marks around them: the beginnings that only private ones have.
_DER = re.compile(
    r"M(?<![A-Za-z0-9+/]M)(?:II[A-Za-z0-9+/]{2,5}(?:ADANBgkqhkiG|BAAK)|IGHAgEA|HcCAQEE)"
    r"[A-Za-z0-9+/=]{40,8192}+"
)


def find_private_keys(text: str) -> Iterator[SecretSpan]:
    """Finds PEM private keys, whole or cut off, with real or escaped line breaks.

    A marker without key material after it (in code that searches for keys) is left unchanged.
    """
    if _PUTTY_HEADER in text:
        yield from _find_putty_keys(text)
    if '"kty' in text:
        yield from ((*match.span("value"), PRIVATE_KEY) for match in _JWK.finditer(text))
    if "MII" in text or "MHcCAQEE" in text or "MIGHAgEA" in text:
        yield from ((*match.span(), PRIVATE_KEY) for match in _DER.finditer(text))
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


_URL_LOGIN = re.compile(
    r"://([^\s/@:\"'`<>]{0,128}+):"
    # A password with a slash: what stands between its first @ and the slash is no host.
    r"((?>(?:[^\s/@\"'`<>]{1,64}+@(?!localhost)[^\s/@.:%\"'`<>]{1,32}+/[^\s/@\"'`<>]{1,64}+@)?)"
    r"[^\s/\"'`<>]{1,256}+)"
)
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
    r"(?:[a-z\-]{2,16}\s{1,4})?"
    r"([a-z0-9._~+/=\-]{8,}+(?!\s\[redacted)(?::[a-z0-9._~+/=\-]{8,}+)?)"
)


HEADER_LITERALS = frozenset({"bearer", "basic", "authorization", "cookie"})


def find_header_credentials(text: str, lower: str, starts: LiteralStarts) -> Iterator[SecretSpan]:
    """Credentials after `Bearer`, `Basic`, `Authorization:`, and in cookies.

    `lower` is the text in lower case, of the same length; `starts` are those of its literals.
    """
    if "bearer" in starts:
        yield from _find_group_spans(text, lower, _BEARER, TOKEN, _is_bearer_value)
    if "basic" in starts:
        yield from _find_group_spans(text, lower, _BASIC, BASIC_AUTH, _is_basic)
    if "authorization" in starts:
        yield from _find_group_spans(text, lower, _HEADER_TOKEN, TOKEN, _is_bearer_value)
    if "cookie" in starts:
        yield from _find_cookies(text, lower)


_COOKIE_HEADER = re.compile(r"cookie[\"']?:[ ]?([^\n]{8,4096}+)")
_COOKIE = re.compile(
    r"(?:(?:sess|sid|auth|token|jwt)[\w.\-]{0,40}=(?:s%3a)?(?=[\w.~%+/\-]{16})"
    # What measures visits is no credential.
    r"|(?<![\w.\-])(?!_g|_fb|_hj|_pk|ajs_|amp_|utm)[\w.\-]{1,64}=(?=[\w.~%+/\-]{24}))"
    r"([\w.~%+/\-]{1,2048}+)"
)


def _find_cookies(text: str, lower: str) -> Iterator[SecretSpan]:
    lines = (line.span(1) for line in _COOKIE_HEADER.finditer(lower))
    yield from find_spans(_COOKIE, lower, lines, _judge_first_group(text, TOKEN, looks_random))


def _find_group_spans(
    text: str, lower: str, pattern: re.Pattern[str], kind: str, check: ValueCheck
) -> Iterator[SecretSpan]:
    return find_spans(pattern, lower, [(0, len(lower))], _judge_first_group(text, kind, check))


def _judge_first_group(text: str, kind: str, check: ValueCheck) -> MatchJudge:
    """Accepts the first group of a match as one of that kind if it passes the check."""
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


_ALLOWED = re.compile(load_allowlist("tokens"))
_VerdictCache = dict[tuple[int, str], bool]
"""Cached verdicts by the group of the rule and the text."""
_JUDGED_CHARS = 256
"""Characters of a value that are checked: enough to recognise a random one."""


_RULES = load_rules("tokens")
_PREFIX_RULES = [rule for rule in _RULES if rule.prefixes]
_CHECKS: dict[str | None, ValueCheck] = {
    "has_digit": has_digit,
    "looks_random": looks_random,
    "looks_generated": looks_generated,
    "looks_opaque": looks_opaque,
    "mixes_cases": mixes_cases,
    None: lambda _: True,
}


def _prefixes_by_letter() -> dict[str, list[tuple[str, RedactionRule]]]:
    """The prefixes without their first letter, by that letter, the longest first."""
    by_letter: dict[str, list[tuple[str, RedactionRule]]] = {}
    for rule in _PREFIX_RULES:
        for prefix in rule.prefixes:
            by_letter.setdefault(prefix[0], []).append((prefix[1:], rule))
    for prefixes in by_letter.values():
        prefixes.sort(key=lambda entry: len(entry[0]), reverse=True)
    return by_letter


def _compile_patterns() -> tuple[re.Pattern[str], re.Pattern[str], list[RedactionRule]]:
    """Two expressions for all prefixes, and the rule of each of their groups.

    The character before a prefix, which is no letter or digit, is part of the match, so that the
    search skips from one such character to the next. The second expression is for what follows a
    written-out `\\n`, as in JSON, or `%3D`, where the last letter belongs to the escape.
    """
    branches, rules = [], [_PREFIX_RULES[0]]
    by_letter = _prefixes_by_letter()
    for letter, prefixes in by_letter.items():
        bodies = [f"{re.escape(prefix)}({rule.regex})" for prefix, rule in prefixes]
        rules += [rule for _, rule in prefixes]
        second_letters = "".join(sorted({re.escape(prefix[0]) for prefix, _ in prefixes}))
        branches.append(f"{letter}(?=[{second_letters}])(?:{'|'.join(bodies)})")
    any_format = f"(?=[{''.join(by_letter)}])(?:{'|'.join(branches)})"
    before = r"\\[nrt]|%[23][0-9A-F]"
    return re.compile(rf"[^A-Za-z0-9]{any_format}"), re.compile(rf"(?:{before}){any_format}"), rules


_PLAIN_PATTERN, _ESCAPED_PATTERN, _RULE_BY_GROUP = _compile_patterns()
_KEYWORD_RULES = [
    (rule, re.compile(rule.regex), _CHECKS[rule.check]) for rule in _RULES if not rule.prefixes
]
TOKEN_LITERALS = frozenset(keyword for rule, _, _ in _KEYWORD_RULES for keyword in rule.keywords)


_MIN_RUN = 15
"""Fewest characters without a blank or mark in any format."""
_MARGIN_BEFORE, _MARGIN_AFTER = 8, 4
"""Characters next to such a run that may belong to the credential or mark its beginning."""
_MAX_RUNS = 20_000


def _build_run_table(marks: str) -> bytes:
    """A translation table: letters, digits and the marks become `a`, all others blanks."""
    is_run_char = (chr(code) in _LETTERS_AND_DIGITS + marks for code in range(256))
    return bytes(ord("a" if in_run else " ") for in_run in is_run_char)


_LETTERS_AND_DIGITS = ascii_letters + digits
_RUN_TABLE, _BASE64_RUN_TABLE = _build_run_table("_-."), _build_run_table("_-.+/,=")
_QUANTIFIERS_AND_LOOKAHEADS = re.compile(r"\{[\d,]*\}\+?|\(\?[=!]")
_BASE64_PREFIXES = tuple(
    prefix
    for rule in _PREFIX_RULES
    for prefix in rule.prefixes
    if re.search("[+/=,]", prefix + _QUANTIFIERS_AND_LOOKAHEADS.sub("", rule.regex))
)
"""Prefixes of credentials that contain other marks."""


def _mark_runs(text: str) -> bytes:
    """The text with `a` for every letter, digit and mark of a credential, and blanks."""
    table = _BASE64_RUN_TABLE if any(prefix in text for prefix in _BASE64_PREFIXES) else _RUN_TABLE
    return text.encode("ascii", "replace").translate(table) + b" "


def _find_runs(marked: bytes, min_run: int) -> list[TextRange]:
    """The runs that are long enough for a credential. After too many, the rest is one run."""
    least, runs, position = b"a" * min_run, list[TextRange](), 0
    while (start := marked.find(least, position)) >= 0:
        if len(runs) >= _MAX_RUNS:
            return [*runs, (max(0, start - _MARGIN_BEFORE), len(marked) - 1)]
        position = marked.find(b" ", start)
        runs.append((max(0, start - _MARGIN_BEFORE), position + _MARGIN_AFTER))
    return runs


def find_known_tokens(text: str, starts: LiteralStarts) -> Iterator[SecretSpan]:
    """Credentials that match a rule, by the literal that they begin with or contain.

    `starts` are those of literals in the text in lower case.
    """
    end, padded, cache = 0, f" {text}", _VerdictCache()
    marked = _mark_runs(text)
    for start, stop in _find_runs(marked, _MIN_RUN):
        for span in _find_prefixed(padded, _PLAIN_PATTERN, max(start, end), stop, cache):
            end = span[1]
            yield span
    if "\\" in text or "%2" in text or "%3" in text:
        yield from _find_prefixed(padded, _ESCAPED_PATTERN, 0, len(text), cache)
    yield from _find_aws_secrets(text)
    for rule, pattern, check in _KEYWORD_RULES:
        if rule.min_run:
            ranges: Iterable[TextRange] = _find_runs(marked, rule.min_run)
        else:
            ranges = ranges_around(rule.keywords, starts)
        for start, stop in ranges:
            for match in pattern.finditer(text, start, stop):
                if check(match[1]):
                    yield *match.span(1), rule.kind


_AWS_RUN = b" " + b"a" * 40 + b" "
_AWS_TABLE = _build_run_table("+/_-=")
_MIN_AWS_DISTINCT = 20


def _find_aws_secrets(text: str) -> Iterator[SecretSpan]:
    """Secret access keys of AWS without a name: 40 random characters of base64."""
    marked = b" " + text.encode("ascii", "replace").translate(_AWS_TABLE) + b" "
    start = marked.find(_AWS_RUN)
    while start >= 0:
        value = text[start : start + 40]
        if is_aws_secret(value) and len(set(value)) >= _MIN_AWS_DISTINCT and looks_random(value):
            yield start, start + 40, AWS_KEY
        start = marked.find(_AWS_RUN, start + 41)


def _find_prefixed(
    padded: str, pattern: re.Pattern[str], position: int, stop: int, cache: _VerdictCache
) -> Iterator[SecretSpan]:
    """Credentials with a prefix, in a part of the text; `padded` is the text after one blank."""
    searched_to, margin = -1, 1 if pattern is _PLAIN_PATTERN else 2
    while match := pattern.search(padded, position, stop + 1):
        start, end = match.start() + margin - 1, match.end() - 1
        if padded[match.start()] == "%":
            start += 1
        group = match.lastindex or 0
        if _is_token(group, match[group], cache):
            yield start, end, _RULE_BY_GROUP[group].kind
            position = end
        elif start >= searched_to:
            # A rejected match may contain another one: it is searched once.
            position, searched_to = start + 2, end
        else:
            position = end


def _is_token(group: int, value: str, cache: _VerdictCache) -> bool:
    """Whether the value passes the check of its rule. After very many values, every one does."""
    cache_key = group, value[:_JUDGED_CHARS]
    if cache_key not in cache:
        if len(cache) >= MAX_JUDGED:
            return True
        check = _CHECKS[_RULE_BY_GROUP[group].check]
        cache[cache_key] = not _ALLOWED.fullmatch(cache_key[1]) and check(cache_key[1])
    return cache[cache_key]
