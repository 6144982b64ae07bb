"""Credentials told by the name they are given: `.env`, JSON, YAML, code, flags, prose.

The name says that a secret is meant; whether the value is one, `redaction_values` judges.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from reverie.domain.redaction_names import FITTING, KEYWORDS, WEAK, fits, kind_once, promised
from reverie.domain.redaction_patterns import (
    API_KEY,
    AWS_KEY,
    BESIDE,
    LISTED,
    MOST_JUDGED,
    PASSWORD,
    REDACTED,
    SECRET,
    TOKEN,
    Part,
    Span,
    in_lists,
    letters_of,
)
from reverie.domain.redaction_values import Form, is_aws_secret, is_secret

_Verdict = tuple[str, int, int, int]
"""The kind of a credential and where it stands from the start of its match; where it is none, no
kind, and last from where in the match another one may begin (0: nowhere)."""
_NONE: _Verdict = ("", 0, 0, 0)
_Seen = dict[str | tuple[int, str], _Verdict]


@dataclass
class Judged:
    """What was judged of assignments: by keyword, of the words with what stands around them, and
    how many credentials went with those of a list that stand beside them."""

    seen: defaultdict[str, _Seen] = field(default_factory=lambda: defaultdict(dict))
    beside: int = 0


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
    r"|[rbfunl@]{0,2}(?P<quote>[\"'`])(?P<quoted>(?>(?:[^\"'`\\\n]|\\.|(?!(?P=quote))[\"'`]){1,512}))"
    r"|(?P<bare>(?!\[redacted_)[^\s\"'`,;<>&]{3,512}+)"
)
_REST = (
    rf"(?P<tail>(?![a-z0-9_\-])|(?={FITTING})[a-z0-9_\-]{{1,24}}+)(?P<close>\]?\\{{0,7}}[\"'`]?(?:\[\w{{0,16}})?\]?)"
    rf"(?:[ ](?:(?:as[ ])?string|str|&str|\{{[ ]get;[ ](?:private[ ])?set;[ ]\}}))?"
    rf"(?P<gap>[ \t]{{0,24}})(?P<sep>{_SEP})(?P<space>[ \t]{{0,8}}+)"
    rf"(?:{_VALUE})"
)


class _Word(NamedTuple):
    """A keyword: what it begins with, the kind that it means, and where it is given a value."""

    head: str
    kind: str
    pattern: re.Pattern[str]


_ASSIGNMENTS = tuple(
    _Word(re.split(r"\W", word[:4])[0], kind, re.compile(rf"(?P<word>{word}){_REST}"))
    for kind, word in KEYWORDS
)
_LETTERS = frozenset("".join(word.head for word in _ASSIGNMENTS))
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
_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_QUOTES = frozenset("'\"`<")
_COMPARING = frozenset({"", "(", ",", "{", "==", "===", "!=", "!=="})
_BARE_SEPS = frozenset({"=", ":", ":=", "=>"})
_SAID = re.compile(r"(?:.*(?:is|was|now|to|是|は)|for .*|[-–—|]|->|→)")
_SPECIAL_REST = re.compile(r"(?>(?:&(?![\w.\-]{1,40}=)[^\s\"'`,;<>&]{1,64}){0,8})")
_PASS_OF = ("db", "user", "my", "root", "admin", "smtp", "ftp", "sql", "pg", "mail", "redis")
_BLANKS = frozenset(" \t\n\r")
_STOPS = _BLANKS | frozenset("\"'`")
_MORE_STOPS = _STOPS | frozenset(",;<>")
_NEAREST, _FARTHEST = 52, 600
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
    """Credentials in assigning positions. `lower`: the text in lower case, same length.

    `judged` holds what was judged in the text before, and may be empty.
    """
    letters = letters_of(lower, _LETTERS)
    for word in _ASSIGNMENTS:
        if letters.issuperset(word.head):
            yield from _assigned_to(word, text, lower, judged)
    if "--" in lower:
        yield from _flags(text, lower)


def _assigned_to(word: _Word, text: str, lower: str, judged: Judged) -> Iterator[Span]:
    seen_before = judged.seen[word.pattern.pattern]
    known = seen_before.get
    position, looked, over, count = 0, -1, -BESIDE, 0
    while position >= 0:
        for match in word.pattern.finditer(lower, position):
            begin, position = match.span()
            end = position
            # Near the start of the text, its length does not tell where in it the match begins.
            near = begin - _NEAREST
            seen = text[near : end + 2] if near >= 0 else (begin, text[: end + 2])
            kind, first, last, again = known(seen) or _verdict(
                word, match, text, lower, seen_before
            )
            if kind:
                start, position, count = begin + first, begin + last, count + 1
                if count > LISTED:
                    start = over if start - over < BESIDE else start
                    over = position = _end_of_list(word, text, lower, judged, position)
                yield start, position, kind
            elif again and begin >= looked:
                # A refused value may itself be a name with a value: looked into once.
                position, looked = begin + again, end
            if position != end:
                break
        else:
            return


def _end_of_list(word: _Word, text: str, lower: str, judged: Judged, end: int) -> int:
    """Where a list ends, each of which begins near the end of one before it."""
    while (begin := lower.rfind(word.head, end, end + BESIDE)) >= 0:
        match = word.pattern.match(lower, begin)
        seen = judged.seen[word.pattern.pattern]
        kind, _, last, _ = _verdict(word, match, text, lower, seen) if match else _NONE
        if not kind:
            break
        judged.beside += lower.count(word.head, end, begin + len(word.head))
        end = begin + last
    return end


def _verdict(word: _Word, match: re.Match[str], text: str, lower: str, judged: _Seen) -> _Verdict:
    """What is to be said of a match; in a flood of them, without judging each."""
    if len(judged) >= MOST_JUDGED:
        return _unjudged(match, word.head)
    begin, end = match.span()
    stop = end + _reach(text, match, end)
    seen = text[begin - _NEAREST : stop] if begin >= _NEAREST else (begin, text[:stop])
    verdict = judged.get(seen)
    if verdict is None:
        span = _judged(word.kind, text, lower, match)
        judged[seen] = verdict = _placed_from(match, span, word.head)
    return verdict


def _reach(text: str, match: re.Match[str], end: int) -> int:
    """How many characters after a match, which ends at `end`, its judgement can depend on."""
    if match.lastgroup != "bare":
        return 2
    following = text[end : end + 1]
    if following in _BLANKS:
        return 2
    if "(" in text[end - 2 : end]:
        return _FARTHEST
    if following in _STOPS or (following in _MORE_STOPS and match["sep"] != "="):
        return 2
    return _FARTHEST


def _placed_from(match: re.Match[str], span: Span | None, head: str) -> _Verdict:
    """The span, placed from the start of the match; where there is none, from where to look on."""
    begin = match.start()
    if span:
        return span[2], span[0] - begin, span[1] - begin, 0
    again = match.start("bare")
    return ("", 0, 0, again - begin) if again > 0 and head[0] in match["bare"] else _NONE


def _unjudged(match: re.Match[str], head: str) -> _Verdict:
    """Whatever a telling name is given, numbers apart: judging each would take long."""
    place, tail = match.lastgroup or 0, match["tail"]
    value = match[place]
    if value.isdigit():
        return _NONE
    begin, start = match.start(), match.start(place)
    if (not tail or fits(tail)) and _REPLACED not in value:
        return SECRET, start - begin, start - begin + len(value), 0
    return ("", 0, 0, start - begin) if place == "bare" and head[0] in value else _NONE


def _flags(text: str, lower: str) -> Iterator[Span]:
    judged: dict[tuple[str, str], str | None] = {}

    def given(match: re.Match[str]) -> Span | None:
        start, end = match.span("bare")
        kind = _FLAG_KINDS.get(match["flag"], API_KEY)
        value = text[start:end].rstrip("])")
        # A word after the flag may be prose about it.
        holds = not value.isalpha() and judged_once(kind, value, Form.ENV, judged)
        return (start, start + len(value), kind) if holds else None

    return in_lists(_FLAG, lower, [(0, len(lower))], given)


def named_values(
    text: str, lower: str, pattern: re.Pattern[str], parts: Iterable[Part], form: Form
) -> Iterator[Span]:
    """The secrets among values with a name beside them, or without one those of passwords."""
    judged: dict[tuple[str, str], str | None] = {}
    kinds: dict[str, str | None] = {}
    named = "name" in pattern.groupindex

    def given(match: re.Match[str]) -> Span | None:
        start, end = match.span("value")
        kind = kind_once(text[slice(*match.span("name"))], kinds) if named else PASSWORD
        found = judged_once(kind, text[start:end], form, judged) if kind else None
        return (start, end, found) if found else None

    return in_lists(pattern, lower, parts, given)


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


def _judged(kind: str, text: str, lower: str, match: re.Match[str]) -> Span | None:
    promise = promised(kind, lower, match)
    if promise is None or (match["word"] == "pass" and not _pass_alone(text, match.start())):
        return None
    form, start, end = _placed(text, match)
    if form is None or _NO_SECRET.search(text, max(0, match.start() - _BEFORE), match.start()):
        return None
    value = text[start:end]
    if form is Form.QUOTED and _plain_key(text, match) and _HEX_KEY.fullmatch(value):
        return start, end, SECRET
    if is_aws_secret(value) and promise in {SECRET, API_KEY, WEAK} and _says_aws(text, match):
        return start, end, AWS_KEY
    if not is_secret(promise, value, form):
        return None
    return start, end, SECRET if promise == WEAK else promise


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
