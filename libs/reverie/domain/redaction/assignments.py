"""Finds credentials assigned to a name: in `.env`, JSON, YAML, code, flags and prose."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from reverie.domain.redaction.matching import (
    API_KEY,
    AWS_KEY,
    LIST_GAP,
    LIST_THRESHOLD,
    MAX_JUDGED,
    PASSWORD,
    PLACEHOLDER_PREFIX,
    SECRET,
    LiteralStarts,
    SecretSpan,
)
from reverie.domain.redaction.secret_names import (
    KEYWORDS,
    TAIL_PATTERN,
    WEAK,
    classify_match,
    is_allowed_tail,
)
from reverie.domain.redaction.value_checks import ValueForm, is_aws_secret, is_secret

_Verdict = tuple[str, int, int, int]
"""The kind of a credential, its start and end relative to the match, and 0. For a match that is no
credential: no kind, and last the offset at which the search goes on within the match (0: after it).
"""
_NO_CREDENTIAL: _Verdict = ("", 0, 0, 0)
_VerdictCache = dict[str | tuple[int, str], _Verdict]


@dataclass
class AssignmentVerdicts:
    """Cached verdicts on assignments by keyword, then by the text of the match and its context;
    and how many credentials were redacted as part of a list without a verdict of their own."""

    by_keyword: defaultdict[str, _VerdictCache] = field(default_factory=lambda: defaultdict(dict))
    skipped_in_lists: int = 0


_TYPED = r":[ ]{0,2}(?:&(?:'static[ ])?)?[a-z_][\w\[\].|&?]{0,40}[ ]=[ ](?=[rbfun]{0,2}[\"'`])"
_PROSE = (
    r"[ ](?:(?:for|of|to|für|von|de|du|del|della|pour|para|van|do|da)[ ][\w ._\-]{1,30}[ ])?"
    r"(?:is|was|to|es|est|ist|lautet|war|è|é|era)"
    r"(?:[ ](?:now|(?:changed|set|reset)[ ]to))?:?(?=[ ])|(?:就)?是|[为為]|は"
    r"|已?(?:更?[改新]|修改|设[置定]?|重置|换|变)(?:[为為]|成了?)"
    r"|[ ]for[ ][a-z0-9 ._\-]{1,30}:(?=[ ])|[ ](?:[-–—|]|->|→)(?=[ ])"
)
# A text that is typed into a form field, and the default of an option.
_INPUT_CALL = (
    r"\)?[,.][ ]?(?:type|send_?keys|fill|val|value|set|set_?text|default|with)[=:(][ ]?(?=[\"'])"
)
_SEPARATOR = (
    rf"=(?![=>])|[?.+]=|:{{2,3}}=|{_TYPED}|===?|!==?|:=|=>|<-|[=:>：]"
    rf"|[(,{{](?=[ ]{{0,24}}[@rbfu]?[\"'`])"
    rf"|{_INPUT_CALL}"
    rf"|{_PROSE}|[ ](?=[\"'`])"
)
_VALUE = (
    r"[\"']?\\{1,7}[\"'](?P<escaped>[^\"'\\\n]{1,512}+)"
    r"|[rbfunl@]{0,2}(?P<quote>[\"'`])(?P<quoted>(?>(?:[^\"'`\\\n]|\\.|(?!(?P=quote))[\"'`]){1,512}))"
    r"|(?P<bare>(?!\[redacted_)[^\s\"'`,;<>&]{3,512}+)"
)
_LINE_BREAK = r"(?:[\\(]\n[ \t]{0,24}+|(?:(?<==)|(?<=[\"']:))\n[ \t]{1,24}+(?=[\"'`]))"
_REST = (
    rf"(?P<tail>(?![a-z0-9_\-])|(?={TAIL_PATTERN})[a-z0-9_\-]{{1,24}}+)(?P<close>\]?\\{{0,7}}[\"'`]?(?:\[\w{{0,16}})?\]?)"
    rf"(?:[ ](?:(?:as[ ])?string|str|&str|\{{[ ]get;[ ](?:private[ ])?set;[ ]\}}))?"
    rf"(?P<gap>[ \t]{{0,24}})(?P<sep>{_SEPARATOR})(?P<space>[ \t]{{0,24}}+{_LINE_BREAK}?)"
    rf"(?:{_VALUE})"
)


@dataclass(frozen=True)
class _Keyword:
    """A keyword: its first letters, its kind, and the expression of an assignment to it."""

    head: str
    kind: str
    expression: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled for the first text that has the keyword: all of them take 50 ms."""
        return re.compile(self.expression)


_ASSIGNMENTS = tuple(
    _Keyword(re.split(r"\W", word[:4])[0], kind, rf"(?P<word>{word}){_REST}")
    for kind, word in KEYWORDS
)
ASSIGNMENT_LITERALS = frozenset(word.head for word in _ASSIGNMENTS)
_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_QUOTES = frozenset("'\"`<")
_COMPARISON_SEPARATORS = frozenset({"", "(", ",", "{", "==", "===", "!=", "!=="})
_BARE_SEPARATORS = frozenset({"=", ":", ":=", "=>", "?=", "+=", "::=", ":::="})
_PROSE_SEPARATOR = re.compile(
    r"(?:.*(?:is|was|now|to|es|est|ist|lautet|war|è|é|era|[是为為は成了])|for .*|[-–—|]|->|→)"
)
_SPECIAL_REST = re.compile(r"(?>(?:&(?![\w.\-]{1,40}=)[^\s\"'`,;<>&]{1,64}){0,8})")
_PASS_PREFIXES = ("db", "user", "my", "root", "admin", "smtp", "ftp", "sql", "pg", "mail", "redis")
_BLANKS = frozenset(" \t\n\r")
_VALUE_STOPS = _BLANKS | frozenset("\"'`")
_BARE_VALUE_STOPS = _VALUE_STOPS | frozenset(",;<>")
_MIN_CONTEXT, _MAX_CONTEXT = 52, 600
_LOWER_PLACEHOLDER = PLACEHOLDER_PREFIX.lower()
_CODE_MARKS = re.compile(r"[()\[\]{}<|\\]")
_CONTEXT_BEFORE = 48
_NON_SECRET_PREFIX = re.compile(
    r"(?:pub|public)[_\-]?(?:key[_\-]?)?$|\[REDACTED_(?:[A-Z]+_)?$"
    r"|arn:(?:(?!arn:)[\w:.\-/*])*$|hashed_$"
    r"|(?:page|next|continuation|sync|websocket|checksum)[_\-/]?$|did:$",
    re.IGNORECASE,
)
"""Text before a keyword that makes the name no secret: `publicKeyToken`, `arn:aws:...:secret`."""
_HEX_KEY = re.compile(r"[0-9a-f]{32}|[0-9a-f]{48}|[0-9a-f]{64}")
_FIRST_ARGUMENT_BEFORE = re.compile(
    r"(?:[({][ ]{0,4}|\w[ (][ ]?[\"'][^\"'\n,]{0,24}[\"'],[ ]?)[\"'][^\"'\n]{0,30}$"
)
_COMPARISON_BEFORE = re.compile(r"(?:cmp|equals|compare)\w{0,12}\([^\"'(),]{0,20}$", re.IGNORECASE)
_WRAPPED_VALUE = re.compile(r"[\w.:\[\]]{1,30}+\([@bru]?[\"']([^\"'\n]{1,512}+)")
_ESCAPED_BREAK, _LAST_ESCAPED_BREAKS = r"\\{1,4}[nrt]", r"(?:\\{1,4}[nrt]){1,4}\Z"
_BREAKS = {True: re.compile(_ESCAPED_BREAK), False: re.compile(_LAST_ESCAPED_BREAKS)}
"""Where an unquoted value ends, and what does not belong to a quoted one."""
_ENV_REST = re.compile(r"[^\s\"'`]{0,512}")


def find_assigned_secrets(
    text: str, lower: str, starts: LiteralStarts, verdicts: AssignmentVerdicts
) -> Iterator[SecretSpan]:
    """Credentials that are assigned to a name. `lower` is the text in lower case, of equal length.

    `starts` are those of its literals, `verdicts` those of earlier searches in the same text.
    """
    for keyword in _ASSIGNMENTS:
        if keyword.head in starts:
            yield from _find_keyword_secrets(keyword, text, lower, verdicts)


def _find_keyword_secrets(
    keyword: _Keyword, text: str, lower: str, verdicts: AssignmentVerdicts
) -> Iterator[SecretSpan]:
    cache = verdicts.by_keyword[keyword.expression]
    get_cached = cache.get
    position, searched_to, list_end, count = 0, -1, -LIST_GAP, 0
    while position >= 0:
        for match in keyword.pattern.finditer(lower, position):
            begin, position = match.span()
            end = position
            # Near the start of the text, the key needs the offset: the context is cut off there.
            window_start = begin - _MIN_CONTEXT
            cache_key = (
                text[window_start : end + 2] if window_start >= 0 else (begin, text[: end + 2])
            )
            kind, first, last, resume = get_cached(cache_key) or _judge_match(
                keyword, match, text, lower, cache
            )
            if kind:
                start, position, count = begin + first, begin + last, count + 1
                if count > LIST_THRESHOLD:
                    start = list_end if start - list_end < LIST_GAP else start
                    list_end = position = _find_list_end(keyword, text, lower, verdicts, position)
                yield start, position, kind
            elif resume and begin >= searched_to:
                # A rejected value may itself be a name with a value: it is searched once.
                position, searched_to = begin + resume, end
            if position != end:
                break
        else:
            return


def _find_list_end(
    keyword: _Keyword, text: str, lower: str, verdicts: AssignmentVerdicts, end: int
) -> int:
    """The end of a list: of its last credential that begins near the end of the one before it."""
    while (begin := lower.rfind(keyword.head, end, end + LIST_GAP)) >= 0:
        match = keyword.pattern.match(lower, begin)
        cache = verdicts.by_keyword[keyword.expression]
        kind, _, last, _ = (
            _judge_match(keyword, match, text, lower, cache) if match else _NO_CREDENTIAL
        )
        if not kind:
            break
        verdicts.skipped_in_lists += lower.count(keyword.head, end, begin + len(keyword.head))
        end = begin + last
    return end


def _judge_match(
    keyword: _Keyword, match: re.Match[str], text: str, lower: str, cache: _VerdictCache
) -> _Verdict:
    """The verdict on a match. With very many distinct matches, the value is not judged."""
    if len(cache) >= MAX_JUDGED:
        return _assume_secret(match, keyword.head)
    begin, end = match.span()
    stop = end + _context_length(text, match, end)
    cache_key = text[begin - _MIN_CONTEXT : stop] if begin >= _MIN_CONTEXT else (begin, text[:stop])
    verdict = cache.get(cache_key)
    if verdict is None:
        span = _judge_assignment(keyword.kind, text, lower, match)
        cache[cache_key] = verdict = _to_verdict(match, span, keyword.head)
    return verdict


def _context_length(text: str, match: re.Match[str], end: int) -> int:
    """The number of characters after `end`, the end of the match, that can change its verdict."""
    if match.lastgroup != "bare":
        return 2
    following = text[end : end + 1]
    if following in _BLANKS:
        return 2
    if "(" in text[end - 2 : end]:
        return _MAX_CONTEXT
    if following in _VALUE_STOPS or (following in _BARE_VALUE_STOPS and match["sep"] != "="):
        return 2
    return _MAX_CONTEXT


def _to_verdict(match: re.Match[str], span: SecretSpan | None, head: str) -> _Verdict:
    """The verdict for a span of a match, or for a match that is no credential."""
    begin = match.start()
    if span:
        return span[2], span[0] - begin, span[1] - begin, 0
    resume = match.start("bare")
    return ("", 0, 0, resume - begin) if resume > 0 and head[0] in match["bare"] else _NO_CREDENTIAL


def _assume_secret(match: re.Match[str], head: str) -> _Verdict:
    """Takes every value but a number for a secret: judging each would take too long."""
    group, tail = match.lastgroup or 0, match["tail"]
    value = match[group]
    if value.isdigit():
        return _NO_CREDENTIAL
    begin, start = match.start(), match.start(group)
    if (not tail or is_allowed_tail(tail)) and _LOWER_PLACEHOLDER not in value:
        return SECRET, start - begin, start - begin + len(value), 0
    return ("", 0, 0, start - begin) if group == "bare" and head[0] in value else _NO_CREDENTIAL


def _judge_assignment(kind: str, text: str, lower: str, match: re.Match[str]) -> SecretSpan | None:
    name_kind = classify_match(kind, lower, match)
    if name_kind is None or (match["word"] == "pass" and not _is_pass_word(text, match.start())):
        return None
    form, start, end = _locate_value(text, match)
    if break_ := _BREAKS[match["bare"] is not None].search(text, start, end):
        end = break_.start()
    if form is None or _NON_SECRET_PREFIX.search(
        text, max(0, match.start() - _CONTEXT_BEFORE), match.start()
    ):
        return None
    value = text[start:end]
    if form is ValueForm.QUOTED and _HEX_KEY.fullmatch(value) and _is_plain_key(text, match):
        return start, end, SECRET
    if is_aws_secret(value) and name_kind in {SECRET, API_KEY, WEAK}:
        name = _name_before_keyword(text, match).lower() + match["tail"]
        if "aws" in name or "access" in name:
            return start, end, AWS_KEY
    if name_kind == WEAK and _has_upper_name(text, match):
        form = ValueForm.ENV
    if not is_secret(name_kind, value, form):
        return None
    return start, end, SECRET if name_kind == WEAK else name_kind


def _is_plain_key(text: str, match: re.Match[str]) -> bool:
    """Whether the whole name of a variable is `key`: `$key = "..."`."""
    is_bare_key_word = match["word"] == "key" and not match["tail"] and not match["close"]
    return (
        is_bare_key_word and match["sep"].strip() == "=" and not _name_before_keyword(text, match)
    )


def _locate_value(text: str, match: re.Match[str]) -> tuple[ValueForm | None, int, int]:
    """Locates the value: its form, start and end. The form is None if there is no value."""
    start, end = match.span("bare")
    if start < 0:
        start, end = match.span("quoted") if match["escaped"] is None else match.span("escaped")
        return _classify_quoted_value(text, match), start, end
    sep = match["sep"].strip(" :：") or ":"
    if sep == ">":
        return (ValueForm.QUOTED if text.startswith("</", end) else None), start, end
    if sep == "=" and not match["gap"] + match["space"] and _has_upper_name(text, match):
        return ValueForm.ENV, start, _match_end(_ENV_REST, text, start)
    end = _match_end(_SPECIAL_REST, text, end)
    if _PROSE_SEPARATOR.fullmatch(sep):
        return ValueForm.PROSE, start, _trim_end(text, start, end, ").]}!?:")
    if text[end : end + 1] in _QUOTES and (wrapped := _WRAPPED_VALUE.match(text, start)):
        return ValueForm.WRAPPED, *wrapped.span(1)
    calls = text[end : end + 1] in _QUOTES and _CODE_MARKS.search(text[start:end].rstrip(")}]"))
    if sep not in _BARE_SEPARATORS or _is_test_result(text, match, text[start:end]) or calls:
        return None, start, end
    return _classify_bare_value(text, match, end), start, _trim_end(text, start, end, ").]}:")


def _classify_bare_value(text: str, match: re.Match[str], end: int) -> ValueForm:
    """The form of an unquoted value: within a quoted line, alone on a line, or in code."""
    after = text[end : end + 1]
    if after in _QUOTES:
        return ValueForm.PROSE
    if after not in {"", "\n", "\r"} or not _begins_line(text, match):
        return ValueForm.BARE
    if _has_upper_name(text, match):
        return ValueForm.ENV
    is_tight = match["sep"] == "=" and not match["gap"] + match["space"]
    return ValueForm.LINE if is_tight else ValueForm.SETTING


def _begins_line(text: str, match: re.Match[str]) -> bool:
    start = match.start() - len(_name_before_keyword(text, match))
    return text[max(0, start - 24) : start].rpartition("\n")[2].strip(" -\t") == ""


def _classify_quoted_value(text: str, match: re.Match[str]) -> ValueForm | None:
    sep = match["sep"].strip(" ")
    if sep == "," and not _is_first_argument(text, match):
        return None
    # The keyword may be a verb before a quoted text: "pass `strict=True`".
    if sep in {"", "("} and match["gap"] and match["word"] == "pass":
        return None
    if not sep and (match["word"] == "pass" or "=" in text[slice(*match.span("quoted"))]):
        return None
    return ValueForm.CALL if sep in _COMPARISON_SEPARATORS or sep[0] in ").," else ValueForm.QUOTED


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """The end of a match of the pattern at `start`; `start` if there is none."""
    match = pattern.match(text, start)
    return match.end() if match else start


def _is_first_argument(text: str, match: re.Match[str]) -> bool:
    """Whether the name is a quoted argument (`get("API_KEY", "...")`), an atom, or is compared."""
    start = match.start() - len(_name_before_keyword(text, match))
    before = text[max(0, start - _CONTEXT_BEFORE) : start]
    if match["close"]:
        return _FIRST_ARGUMENT_BEFORE.search(before) is not None
    return before[-1:] == "{" or _COMPARISON_BEFORE.search(before) is not None


def _is_pass_word(text: str, start: int) -> bool:
    """Whether `pass` is a word of the name (DB_PASS, userPass, dbpass), not part of another."""
    before = text[max(0, start - 5) : start]
    camel = text[start : start + 1].isupper() and before[-1:].islower()
    return camel or not before[-1:].isalnum() or before.lower().endswith(_PASS_PREFIXES)


def _is_test_result(text: str, match: re.Match[str], value: str) -> bool:
    """Whether the name is `pass` alone, which test runners print before names of tests."""
    before = text[max(0, match.start() - 40) : match.start()].lower()
    return (
        match["word"] == "pass"
        and not _name_before_keyword(text, match).rstrip("-")
        and "user" not in before
        and not is_secret(PASSWORD, value, ValueForm.SPOKEN)
    )


def _trim_end(text: str, start: int, end: int, marks: str) -> int:
    return start + len(text[start:end].rstrip(marks))


def _has_upper_name(text: str, match: re.Match[str]) -> bool:
    return (_name_before_keyword(text, match) + text[match.start() : match.end("tail")]).isupper()


def _name_before_keyword(text: str, match: re.Match[str]) -> str:
    """The part of the identifier before the keyword, 48 characters of it at most."""
    chunk = text[max(0, match.start() - 48) : match.start()]
    name = chunk[len(chunk.rstrip(_NAME_CHARS)) :]
    # The first letter of `\nDB_PASSWORD` belongs to a written-out line break.
    is_escape = name[:1] in {"n", "r", "t"} and chunk[: -len(name)].endswith("\\")
    return name[1:] if is_escape else name
