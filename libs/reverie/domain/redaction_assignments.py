"""Credentials told by the name they are given: `.env`, JSON, YAML, code, flags, prose.

The name says that a secret is meant; whether the value is one, `redaction_values` judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.domain.redaction_names import KEYWORDS, WEAK
from reverie.domain.redaction_patterns import (
    API_KEY,
    AWS_KEY,
    MOST_JUDGED,
    PASSWORD,
    REDACTED,
    SECRET,
    TOKEN,
    Span,
)
from reverie.domain.redaction_values import Form, is_aws_secret, is_secret, words_of

_Seen = dict[str | tuple[int, str], Span | None]
Judged = dict[int, _Seen]
"""What was judged of assignments: by keyword, the words with what stands around them, and where
from their start the credential stands."""

_KEY_OF = re.compile(
    r"(?:api|app|access|auth|private|encryption|encrypt|signing|sign|master|account|shared|"
    r"subscription|service|admin|storage|client|server|consumer|crypto|aes|hmac|jwt|cipher|"
    r"license|deploy|webhook|secret|validation|instrumentation)[_\-. ]?\Z"
)
_TYPED = r":[ ]{0,2}(?:&(?:'static[ ])?)?[a-z_][\w\[\].|&?]{0,40}[ ]=[ ](?=[rbfun]{0,2}[\"'`])"
_PROSE = (
    r"[ ](?:for[ ][a-z0-9 ._\-]{1,30}[ ])?(?:is|was)"
    r"(?:[ ](?:now|(?:changed|set|reset)[ ]to))?:?(?=[ ])|是|は"
    r"|[ ]for[ ][a-z0-9 ._\-]{1,30}:(?=[ ])|[ ](?:[-–—|]|->|→)(?=[ ])"
)
# What is typed into a field, and what an option holds where nothing is given.
_GIVEN = r"\)?[,.][ ]?(?:type|send_?keys|fill|val|value|set_?text|default|with)[=:(][ ]?(?=[\"'])"
_SEP = (
    rf"=(?![=>])|{_TYPED}|===?|!==?|:=|=>|<-|[=:>：]|[(,{{](?=[ ]{{0,4}}[@rbfu]?[\"'`])|{_GIVEN}"
    rf"|{_PROSE}|[ ](?=[\"'`])"
)
_VALUE = (
    r"[\"']?\\{1,7}[\"'](?P<escaped>[^\"'\\\n]{1,512}+)"
    r"|[rbfunl@]{0,2}(?P<quote>[\"'`])(?P<quoted>(?:[^\"'`\\\n]|\\.|(?!(?P=quote))[\"'`]){1,512}+)"
    r"|(?P<bare>(?!\[redacted_)[^\s\"'`,;<>&]{3,512}+)"
)
_REST = (
    rf"(?P<tail>[a-z0-9_\-]{{0,24}}+)(?P<close>\]?\\{{0,7}}[\"'`]?(?:\[\w{{0,16}})?\]?)"
    rf"(?:[ ](?:(?:as[ ])?string|str|&str|\{{[ ]get;[ ](?:private[ ])?set;[ ]\}}))?"
    rf"(?P<gap>[ \t]{{0,24}})(?P<sep>{_SEP})(?P<space>[ \t]{{0,8}}+)"
    rf"(?:{_VALUE})"
)
_ASSIGNMENTS = tuple((kind, re.compile(rf"(?P<word>{word}){_REST}")) for kind, word in KEYWORDS)
_ABROAD = {index for index, (_, word) in enumerate(KEYWORDS) if not word.isascii()}
_NAMES = tuple((kind, re.compile(rf"(?:{word})(?P<tail>.*)")) for kind, word in KEYWORDS)
TELLING = re.compile("|".join(word for _, word in KEYWORDS))
_FLAG = re.compile(
    r"--(?:[a-z0-9]{1,20}-){0,4}(?P<flag>password|passwd|passphrase|pass|token|auth"
    r"|api-?key|(?:secret|access|account|storage|master)-key|secret)"
    r"[ \t]{1,4}"
    r"[\"']?(?P<bare>[^\s\"'`,;<>\-][^\s\"'`,;<>]{3,512}+)"
)
_FLAG_KINDS = {
    **dict.fromkeys(("password", "passwd", "passphrase", "pass"), PASSWORD),
    **dict.fromkeys(("token", "auth"), TOKEN),
    "secret": SECRET,
}
_TAILS = words_of(
    "base key keybase accesskey value val str string text prod production dev development staging "
    "stage test live main primary secondary old new current default raw plain plaintext hex b64 "
    "base64 data"
)
_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_QUOTES = frozenset("'\"`<")
_COMPARING = frozenset({"", "(", ",", "{", "==", "===", "!=", "!=="})
_BARE_SEPS = frozenset({"=", ":", ":=", "=>"})
_SAID = re.compile(r"(?:.*(?:is|was|now|to|是|は)|for .*|[-–—|]|->|→)")
_SPECIAL_REST = re.compile(r"(?:&(?![\w.\-]{1,40}=)[^\s\"'`,;<>&]{1,64}){0,8}+")
_PASS_OF = ("db", "user", "my", "root", "admin", "smtp", "ftp", "sql", "pg", "mail", "redis")
_BLANKS = frozenset(" \t\n\r")
_STOPS = _BLANKS | frozenset("\"'`")
_MORE_STOPS = _STOPS | frozenset(",;<>")
_NEAREST, _FARTHEST = 52, 600
_UNSEEN: Span = (0, 0, "")
_REPLACED = REDACTED.lower()
_CALLS = re.compile(r"[()\[\]{}<|\\]")
_BEFORE = 48
_NO_SECRET = re.compile(
    r"(?:pub|public)[_\-]?(?:key[_\-]?)?$|\[REDACTED_(?:[A-Z]+_)?$"
    r"|arn:[\w:.\-/*]*$",
    re.IGNORECASE,
)
"""What stands before a keyword that promises none then: `publicKeyToken`, `arn:aws:...:secret`."""
_HEX_KEY = re.compile(r"[0-9a-f]{32}|[0-9a-f]{48}|[0-9a-f]{64}")
_NAMED_BEFORE = re.compile(
    r"(?:[({][ ]{0,4}|\w[ (][ ]?[\"'][^\"'\n,]{0,24}[\"'],[ ]?)[\"'][^\"'\n]{0,30}$"
)
_COMPARED = re.compile(r"(?:cmp|equals|compare)\w{0,12}\([^\"'(),]{0,20}$", re.IGNORECASE)
_WRAPPED = re.compile(r"[\w.:\[\]]{1,30}+\([@bru]?[\"']([^\"'\n]{1,512}+)")
_ENV_REST = re.compile(r"[^\s\"'`]{0,512}")


def assigned(text: str, lower: str, judged: Judged) -> Iterator[Span]:
    """Credentials in assigning positions. `lower`: the text in ASCII lower case, same length.

    `judged` holds what was judged in the text before, and may be empty.
    """
    ascii_only = lower.isascii()
    for index, (kind, pattern) in enumerate(_ASSIGNMENTS):
        if ascii_only and index in _ABROAD:
            continue
        yield from _assigned_to(kind, pattern, text, lower, judged.setdefault(index, {}))
    if "--" in lower:
        yield from _flags(text, lower)


def _assigned_to(
    kind: str, pattern: re.Pattern[str], text: str, lower: str, judged: _Seen
) -> Iterator[Span]:
    position, looked = 0, -1
    while match := pattern.search(lower, position):
        begin, end = match.span()
        if len(judged) >= MOST_JUDGED and (given := _unjudged(match)):
            yield given
            position = given[1]
            continue
        stop = end + (1 if text[end : end + 1] in _BLANKS else _reach(text, match, end))
        # Near the start of the text, its length does not tell where in it the match begins.
        seen = text[begin - _NEAREST : stop] if begin >= _NEAREST else (begin, text[:stop])
        found = judged.get(seen, _UNSEEN)
        if found is _UNSEEN:
            found = None
            if len(judged) < MOST_JUDGED:
                judged[seen] = found = _placed_from(begin, _judged(kind, text, lower, match))
        if found:
            yield begin + found[0], begin + found[1], found[2]
            position = begin + found[1]
        elif begin >= looked and (bare := match.start("bare")) > 0:
            # A refused value may itself be a name with a value: looked into once.
            position, looked = bare, end
        else:
            position = end


def _reach(text: str, match: re.Match[str], end: int) -> int:
    """How many characters after a match, which ends at `end`, its judgement can depend on."""
    following = text[end : end + 1]
    if match.lastgroup != "bare":
        return 1
    if "(" in text[end - 2 : end]:
        return _FARTHEST
    if following in _STOPS:
        return 1
    return 2 if following in _MORE_STOPS and match["sep"] != "=" else _FARTHEST


def _placed_from(begin: int, span: Span | None) -> Span | None:
    """The span, placed from there."""
    return (span[0] - begin, span[1] - begin, span[2]) if span else None


def _unjudged(match: re.Match[str]) -> Span | None:
    """Whatever a telling name is given, numbers apart: judging each would take long."""
    place, tail = match.lastgroup or 0, match["tail"]
    value = match[place]
    if value.isdigit() or _REPLACED in value or not (tail == "" or _fits(tail)):
        return None
    return *match.span(place), SECRET


def _flags(text: str, lower: str) -> Iterator[Span]:
    judged: dict[tuple[str, str], str | None] = {}
    for match in _FLAG.finditer(lower):
        start, end = match.span("bare")
        kind = _FLAG_KINDS.get(match["flag"], API_KEY)
        value = text[start:end].rstrip("])")
        # A word after the flag may be prose about it.
        if not value.isalpha() and judged_once(kind, value, Form.ENV, judged):
            yield start, start + len(value), kind


def named_values(text: str, matches: Iterator[re.Match[str]], form: Form) -> Iterator[Span]:
    """The secrets among values with a name beside them, or without one those of passwords."""
    judged: dict[tuple[str, str], str | None] = {}
    kinds: dict[str, str | None] = {}
    for match in matches:
        start, end = match.span("value")
        kind: str | None = PASSWORD
        if "name" in match.re.groupindex:
            kind = _kind_once(text[slice(*match.span("name"))], kinds)
        if kind and (found := judged_once(kind, text[start:end], form, judged)):
            yield start, end, found


def _kind_once(name: str, kinds: dict[str, str | None]) -> str | None:
    if name not in kinds:
        if len(kinds) >= MOST_JUDGED:
            return SECRET if TELLING.search(name.lower()) else None
        kinds[name] = name_kind(name)
    return kinds[name]


def judged_once(
    kind: str, value: str, form: Form, judged: dict[tuple[str, str], str | None]
) -> str | None:
    """The kind of secret that a value is, if it is one; each is judged once.

    Where `judged` holds very many, any that is not a placeholder is one.
    """
    seen = (kind, value)
    if seen not in judged:
        if len(judged) >= MOST_JUDGED:
            return None if REDACTED in value else SECRET
        judged[seen] = (SECRET if kind == WEAK else kind) if is_secret(*seen, form) else None
    return judged[seen]


def name_kind(name: str) -> str | None:
    """What kind of secret a name promises, `WEAK` where it only hints; None for other names."""
    lower = name.lower()
    for kind, pattern in _NAMES:
        match = pattern.search(lower)
        promised = match and _promised(kind, lower, match)
        if promised:
            return promised
    return None


def _promised(kind: str, lower: str, match: re.Match[str]) -> str | None:
    """What the name promises once the words beside its keyword are read too."""
    tail = match["tail"]
    if tail and not _fits(tail):
        return None
    if kind == API_KEY and not _KEY_OF.search(lower, max(0, match.start() - 16), match.start()):
        return WEAK
    return WEAK if kind != PASSWORD and _bare_tail(tail) == "s" else kind


def _fits(tail: str) -> bool:
    """Whether a name still promises a secret with that after its keyword."""
    rest = _bare_tail(tail)
    return rest in {"", "s"} or rest in _TAILS


def _bare_tail(tail: str) -> str:
    return tail.replace("_", "").replace("-", "").rstrip("0123456789")


def _judged(kind: str, text: str, lower: str, match: re.Match[str]) -> Span | None:
    promised = _promised(kind, lower, match)
    if promised is None or (match["word"] == "pass" and not _pass_alone(text, match.start())):
        return None
    form, start, end = _placed(text, match)
    if form is None or _NO_SECRET.search(text, max(0, match.start() - _BEFORE), match.start()):
        return None
    value = text[start:end]
    if form is Form.QUOTED and _plain_key(text, match) and _HEX_KEY.fullmatch(value):
        return start, end, SECRET
    if is_aws_secret(value) and promised in {SECRET, API_KEY, WEAK} and _says_aws(text, match):
        return start, end, AWS_KEY
    if not is_secret(promised, value, form):
        return None
    return start, end, SECRET if promised == WEAK else promised


def _plain_key(text: str, match: re.Match[str]) -> bool:
    """Whether a variable is called `key` and no more: `$key = "..."`."""
    named = match["word"] == "key" and not match["tail"] and not match["close"]
    return named and match["sep"].strip() == "=" and not _left(text, match)


def _says_aws(text: str, match: re.Match[str]) -> bool:
    name = _left(text, match).lower() + match["tail"]
    return "aws" in name or "access" in name


def _placed(text: str, match: re.Match[str]) -> tuple[Form | None, int, int]:
    """How the value is written (None: not as one), and where it stands."""
    start, end = match.span("bare")
    if start < 0:
        start, end = match.span("quoted") if match["escaped"] is None else match.span("escaped")
        return _quoted_form(text, match), start, end
    sep = match["sep"].strip(" :：") or ":"
    if sep == ">":
        return (Form.QUOTED if text.startswith("</", end) else None), start, end
    if sep == "=" and not match["gap"] + match["space"] and _upper_name(text, match):
        return Form.ENV, start, _after(_ENV_REST, text, start)
    end = _after(_SPECIAL_REST, text, end)
    if _SAID.fullmatch(sep):
        return Form.PROSE, start, _trimmed(text, start, end, ").]}!?:")
    if text[end : end + 1] in _QUOTES and (wrapped := _WRAPPED.match(text, start)):
        return Form.WRAPPED, *wrapped.span(1)
    calls = text[end : end + 1] in _QUOTES and _CALLS.search(text[start:end].rstrip(")}]"))
    if sep not in _BARE_SEPS or _is_verdict(text, match) or calls:
        return None, start, end
    return _bare_form(text, match, end), start, _trimmed(text, start, end, ").]}:")


def _bare_form(text: str, match: re.Match[str], end: int) -> Form:
    """A value without quotes of its own: in a quoted line, alone in a line, or in code."""
    after = text[end : end + 1]
    if after in _QUOTES:
        return Form.PROSE
    if after not in {"", "\n", "\r"} or not _begins_line(text, match):
        return Form.BARE
    tight = match["sep"] == "=" and not match["gap"] + match["space"]
    return Form.LINE if tight or _upper_name(text, match) else Form.BARE


def _begins_line(text: str, match: re.Match[str]) -> bool:
    start = match.start() - len(_left(text, match))
    return text[max(0, start - 24) : start].rpartition("\n")[2].strip(" -\t") == ""


def _quoted_form(text: str, match: re.Match[str]) -> Form | None:
    sep = match["sep"].strip(" ")
    if (sep == "," and not _first_argument(text, match)) or (not sep and _is_said(text, match)):
        return None
    return Form.CALL if sep in _COMPARING or sep[0] in ").," else Form.QUOTED


def _is_said(text: str, match: re.Match[str]) -> bool:
    """Whether a text in quotes stands beside a verb: "pass `strict=True`"."""
    return match["word"] == "pass" or "=" in text[slice(*match.span("quoted"))]


def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where a pattern that matches at `start`, and be it nothing, ends."""
    match = pattern.match(text, start)
    return match.end() if match else start


def _first_argument(text: str, match: re.Match[str]) -> bool:
    """Whether the name is quoted (`get("API_KEY", "...")`), an atom, or what is compared."""
    start = match.start() - len(_left(text, match))
    before = text[max(0, start - _BEFORE) : start]
    if match["close"]:
        return _NAMED_BEFORE.search(before) is not None
    return before[-1:] == "{" or _COMPARED.search(before) is not None


def _pass_alone(text: str, start: int) -> bool:
    """Whether `pass` is a word of the name (DB_PASS, userPass, dbpass), not the end of another."""
    before = text[max(0, start - 5) : start]
    camel = text[start : start + 1].isupper() and before[-1:].islower()
    return camel or not before[-1:].isalnum() or before.lower().endswith(_PASS_OF)


def _is_verdict(text: str, match: re.Match[str]) -> bool:
    """Whether the name is `pass` alone, which test runners print before names of tests."""
    before = text[max(0, match.start() - 40) : match.start()].lower()
    return match["word"] == "pass" and not _left(text, match).rstrip("-") and "user" not in before


def _trimmed(text: str, start: int, end: int, marks: str) -> int:
    return start + len(text[start:end].rstrip(marks))


def _upper_name(text: str, match: re.Match[str]) -> bool:
    return (_left(text, match) + text[match.start() : match.end("tail")]).isupper()


def _left(text: str, match: re.Match[str]) -> str:
    """The part of the identifier before the keyword, 48 characters of it at most."""
    chunk = text[max(0, match.start() - 48) : match.start()]
    return chunk[len(chunk.rstrip(_NAME_CHARS)) :]
