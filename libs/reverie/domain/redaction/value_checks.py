"""Decides whether a value is a secret, by how random it looks, how it is written and its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from reverie.domain.redaction.matching import PASSWORD, SECRET
from reverie.domain.redaction.randomness import (
    has_digit,
    is_unpronounceable,
    looks_generated,
    looks_opaque,
    looks_random,
    mixes_cases,
)
from reverie.domain.text.characters import word_set

_WORD_PIECE = re.compile(r"[^\W_]+")
_NUMBERED_WORD = re.compile(r"([^\W\d_]+)\d{0,4}|\d{1,9}|\d{1,2}[A-Za-z]{1,3}\d{0,2}")
_CASED_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_MIN_LONG_NUMBER = 10
_UNIX_TIME = re.compile(r"1\d{9}(?:\d{3})?")
_MIN_PHRASE_WORDS = 4


def is_wordy(text: str) -> bool:
    """Whether a text consists of words, names and short numbers, such as `order_items 2024-05`."""
    pieces = _WORD_PIECE.findall(text)
    if "".join(pieces).isdigit():
        is_time = len(pieces) == 1 and _UNIX_TIME.fullmatch(pieces[0]) is not None
        return is_time or sum(map(len, pieces)) < _MIN_LONG_NUMBER
    symbols = _SPECIAL.findall(text)
    return all(map(_is_ordinary_piece, pieces)) and (len(symbols) < 2 or " " in text)


def _is_ordinary_piece(piece: str) -> bool:
    match = _NUMBERED_WORD.fullmatch(piece)
    if match is None or match[1] is None:
        return match is not None
    words = _CASED_WORD.findall(match[1])
    is_scrambled = bool(words) and len(match[1]) > 4 and len(match[1]) < 2.5 * len(words)
    return not is_scrambled and not is_unpronounceable(match[1])


def is_passphrase(text: str) -> bool:
    """Whether a text is four or more distinct words without those that sentences consist of."""
    words = _PIECES.split(text)
    is_phrase = len(words) >= _MIN_PHRASE_WORDS and len(set(words)) == len(words)
    return (
        is_phrase
        and all(word.isalpha() and word.islower() and len(word) >= 3 for word in words)
        and _SENTENCE_WORDS.isdisjoint(words)
    )


class ValueForm(StrEnum):
    """The form of a value: quoted, an argument, the argument of a nested call, or unquoted.

    Unquoted values are in an environment file, in code, in prose, or alone on a line: after a name
    and `=`, or as a setting, `name: value`.
    Spoken ones stand beside a word such as `password`, with nothing between them.
    """

    QUOTED = "quoted"
    CALL = "call"
    WRAPPED = "wrapped"
    ENV = "env"
    BARE = "bare"
    PROSE = "prose"
    LINE = "line"
    SETTING = "setting"
    SPOKEN = "spoken"
    QUERY = "query"
    RANDOM = "random"
    PHRASE = "phrase"


_PLACEHOLDER_WORD = re.compile(
    r"passw|passphrase|secret|token|apikey|api_key|api-key|credential|placeholder|"
    r"example|redacted|changeme|changeit|change_me|change-me|your_|your-|dummy|fake|"
    r"sample|insert|replace|todo"
)
_NON_SECRET_WORDS = word_set(
    "none null nil undefined true false string bytes object number required optional missing "
    "hidden visible error todo empty test testing foobar inherit auto default unknown public "
    "private bearer basic oauth oauth2 hmac input field label show hide reset forgot incorrect "
    "wrong invalid valid write read pass file stdin prompt always never expired enabled "
    "disabled keychain header query body cookie session value text identifier integer boolean "
    "varchar change update delete create b64enc b64dec nindent"
)
_SENTENCE_WORDS = word_set(
    "the and are was for not you your our must should can cannot may will has have with from this "
    "that enter please when too short long wrong set use used user login sign choose confirm new "
    "old invalid incorrect required reset least does did but all any its into characters"
)
_TYPE_NAME = re.compile(
    r"(?:u?int|float|uint|sha|md|base|utf|latin|cp|iso|hmac|aes|rsa|ed|es|hs|rs|ps|u|i|f)-?\d{1,5}"
    r"(?:[_\-]?[a-z]{0,6}|\.[a-z]\w{0,60})",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"(?!/[A-Za-z0-9+/]{27,90}={1,2}$)(?:\?[a-z]|[A-Z][a-z]{2,}[?!]$|!(?:Ref|Sub|GetAtt|ImportValue|Join|If|Select|vault|secret|env|reference|var)\b"
    r"|\[[A-Za-z_ ]+\]$"
    r"|\$(?:[{(]|[A-Za-z_]\w*(?:-|->.*)?$)|[%#]?\{|%\w*%?$|%\(|[<@:|]|&[a-z]|\.{2}|/[\w.]|\.{1,2}/|~/"
    r"|(?:os|process|import\.meta|env|environ|config|cfg|settings|secrets?|vars|self|this|cls|ctx|"
    r"opts|options|args|params|props|req|request|res|response|data|state|event|user)[.\[(]"
    r"|x:\d|!!\w+$|(?:%[sdr]\W?)+$|getenv|System\.getenv|ENV\[|vault:|ref\+|arn:|https?:|file:|op:|ssm:|data:"
    r"|AC[0-9a-f]{32}$|pk_(?:live|test)_|age1[0-9a-z]{58}$|0x[0-9a-f]{1,16}$|Ag[A-D][A-Za-z0-9+/]{150})"
)
_TEMPLATE = re.compile(r"\$[{(]|\{\{|\{[A-Za-z_][\w.]*\}|\]\(|\[REDACTED")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[\w$]+)*")
_SLUG = re.compile(r"[A-Za-z]+(?:[-_.:/ ][A-Za-z]+)*[-_.]?\d{0,3}")
_NUMBERED = re.compile(r"[A-Za-z]{4,}\d{3,}")
_WORDY = re.compile(r"[A-Za-z_\-. ]*\d{0,2}")
_CAPITALISED = re.compile(r"[A-ZÀ-Þ][a-zß-ÿ]+")
_GENERIC_NAME = re.compile(r"(?:arg|val|value|var|param|user|str|field|item|data|input|pw|x|y)\d+")
_DIGEST = re.compile(
    r"(?:sha\d+[-:])?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64})|sha\d+-.*"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)
_VALIDATION_RULES = re.compile(r"[a-z_]+(?::[\w,]+)?(?:\|[a-z_]+(?::[\w,]+)?)+")
_STYLE_CLASS = re.compile(r"[a-z]{2,10}(?::[a-z]+)+(?:-[a-z]+)*-\d{1,3}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX_KEY = re.compile(r"[0-9a-f]{32,64}", re.IGNORECASE)
_CAMEL_CASE = re.compile(r"[A-Z][a-z]{2,}(?:[A-Z][a-z]{2,})+")
_AWS_SECRET = re.compile(r"[A-Za-z0-9/+]{40}")
_KEY_CHARS = re.compile(r"[A-Za-z0-9_\-+/=.~%]{20,}")
_PHRASE = re.compile(r"[a-z]{3,}(?: [a-z]{3,}){3,11}")
_SEED_PHRASE = re.compile(r"[a-z]{3,8}(?: [a-z]{3,8}){11,23}")
_SPECIAL = re.compile(r"[!@#$%^&*+=~?€£]")
_LETTER = re.compile(r"[^\W\d_]")
_CODE_MARK = re.compile(r"[()\[\]{}<>|\\]")
_PIECES = re.compile(r"[-_./: ]+")


def is_aws_secret(value: str) -> bool:
    """Whether a value has the form of an AWS secret access key: 40 of base64, mixed."""
    if not _AWS_SECRET.fullmatch(value) or not has_digit(value):
        return False
    return value.lower() != value and value.upper() != value and "EXAMPLE" not in value


def is_secret(kind: str, value: str, form: ValueForm) -> bool:
    """Whether a value of that form, under a name of that kind, is a secret."""
    value = value.strip()
    if form in _SAID and not value.isascii():
        # What follows in a language without blanks is no part of the value.
        value = _UNSPACED.split(value, maxsplit=1)[0]
    if len(value) < 4 or len(set(value)) <= 2 or _is_placeholder(value):
        return False
    if kind == PASSWORD:
        return _PASSWORD_RULES[form](value)
    if kind == SECRET and form in {ValueForm.QUOTED, ValueForm.ENV}:
        return _is_short_secret(value) or _is_key_like(value)
    if kind == SECRET and form in _ALONE and _is_spoken_password(value):
        return True
    if kind not in {SECRET, "API_KEY", "TOKEN"}:
        if form is ValueForm.ENV and _is_spoken_password(value.partition(":")[2]):
            return True
        if form is ValueForm.ENV and (_UUID.fullmatch(value) or _HEX_KEY.fullmatch(value)):
            return True
        return _is_hinted_secret(value)
    return _KEY_RULES[form](value)


def _is_placeholder(value: str) -> bool:
    """Whether a value is a reference, a placeholder, a type or a constant's name."""
    value = value if value[0] in "[(<" else value.rstrip("])>")
    lower = value.lower()
    if lower in _NON_SECRET_WORDS or _TYPE_NAME.fullmatch(value) or _GENERIC_NAME.fullmatch(lower):
        return True
    if _REFERENCE.match(value) or _TEMPLATE.search(value) or _CONSTANT.fullmatch(value):
        return True
    if _VALIDATION_RULES.fullmatch(value) or _STYLE_CLASS.fullmatch(value):
        return True
    if _is_type_name(value) or "EXAMPLE" in value:
        return True
    return _PLACEHOLDER_WORD.search(lower) is not None and _WORDY.fullmatch(value) is not None


def _is_type_name(value: str) -> bool:
    """Whether most of a dotted name's last part are words in camel case: `X25519PrivateKey`."""
    last = value.rpartition(".")[2]
    camel = _CAMEL_CASE.search(last)
    if camel is None or is_unpronounceable(camel[0]):
        return False
    return len(camel[0]) >= 0.6 * len(last) and value.isascii()


def _has_letter(value: str) -> bool:
    return _LETTER.search(value) is not None


def _is_quoted_password(value: str) -> bool:
    words = value.split()
    if len(words) > 1:
        is_short_phrase = len(words) <= 3 and has_digit(value) and _SPECIAL.search(value)
        all_words_numbered = len(words) <= 6 and all(
            has_digit(word) and _has_letter(word) for word in words
        )
        return (
            bool(is_short_phrase)
            or all_words_numbered
            or (_PHRASE.fullmatch(value) is not None and _SENTENCE_WORDS.isdisjoint(words))
        )
    if has_digit(value) or _SPECIAL.search(value):
        return True
    pieces = _PIECES.split(value)
    if len(pieces) > 1:
        return len(pieces) >= 4 and "." not in value
    return len(value) >= 5 and not _CAPITALISED.fullmatch(value)


def _is_bare_password(value: str) -> bool:
    if _SPECIAL.search(value) and not _has_code_marks(value):
        return True
    if "." in value or _has_code_marks(value):
        return False
    return len(value) >= 5 and (has_digit(value) or _is_typed_at_random(value))


def _is_typed_at_random(value: str) -> bool:
    """Whether a value without digits is no word or name."""
    return len(value) >= 8 and value.isascii() and value.isalpha() and looks_opaque(value)


def _is_line_password(value: str) -> bool:
    return _is_bare_password(value) or (len(value) >= 6 and value.isalpha() and value.islower())


def _is_prose_password(value: str) -> bool:
    inner = value.rstrip("!?*.")
    return (
        len(value) >= 6
        and not _has_code_marks(value)
        and _has_letter(value)
        and bool(has_digit(inner) or _SPECIAL.search(inner) or _is_typed_at_random(inner))
    )


_TECHNICAL = re.compile(
    r"v?\d+[.:x]\d\S*|[\w\-./]*\.[a-z\d]{1,4}|[A-Z]{2,10}[-#]\d+|[A-Z]\d-\d{2,4}|#\d+|\d+[a-zA-Z]{1,4}"
    r"|[0-9a-f]{7,12}|[0-9a-f]{40}|[a-z0-9\-]*-[0-9a-f]{8,10}-[a-z0-9]{5}|\d{4}-\d\d\S*|[a-z]+(?:-[a-z]*\d{0,3})+|[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\d+[_\-][\w\-]+"
    r"|(?i:oauth|argon|bcrypt|scrypt|http|ipv|utf|base|ed|secp|x86|amd|arm|py|python|node|es|tls|ssl|md|sha|pbkdf|aes|b)"
    r"-?\d\w*|(?:[A-Z][a-z]+){2,}\d{0,3}|[a-z]+(?:[A-Z][a-z]+)+\d{0,3}|1Password|_\w+"
    r"|(?i:chrome|firefox|safari|ubuntu|debian|windows|postgres|mysql|redis|job|build|theme|table|step"
    r"|page|form|version|rule|case|phase|level|sprint|migration|fixture|route|part)-?\d+"
    r"|[A-Za-z_]\w*=.*|(?!(?i:hunter))[A-Za-z][A-Za-z\-]{2,10}\d[?!]?|[^/\\\n]*[/\\].*"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[^\s@]*@[^\s@.]*\.\S*|[a-z][\w.\-]*@[a-z][\w.\-]*"
)
"""Names of files, versions, tickets, sizes, commits and formats, which have digits too."""


_MARK_WITHIN = re.compile(r"\w[!#%*@&^~]\w")


def _is_spoken_password(value: str) -> bool:
    is_mixed = len(value) >= 6 and has_digit(value) and _has_letter(value)
    is_marked = len(value) >= 8 and _MARK_WITHIN.search(value) and not value.islower()
    is_random = len(value) >= 10 and value.isascii() and value.isalpha() and looks_random(value)
    return (
        bool(is_mixed or is_marked or is_random)
        and not _has_code_marks(value)
        and not _TECHNICAL.fullmatch(value)
    )


def _is_query_secret(value: str) -> bool:
    return (
        (has_digit(value) or not value.islower()) and _has_letter(value) and looks_generated(value)
    )


def _is_call_password(value: str) -> bool:
    has_mark = has_digit(value) or _SPECIAL.search(value.rstrip("!?"))
    return (bool(has_mark) and _is_quoted_password(value)) or _is_typed_at_random(value)


def _is_wrapped_password(value: str) -> bool:
    is_plain = value[0] not in "#./*" and not _has_code_marks(value) and "%" not in value
    return is_plain and has_digit(value) and _has_letter(value) and _is_quoted_password(value)


def _has_code_marks(value: str) -> bool:
    """Whether a value contains marks of code: of calls, indexes, blocks or generics."""
    return _CODE_MARK.search(value) is not None


def _is_short_secret(value: str) -> bool:
    if _NUMBERED.fullmatch(value):
        return True
    if len(value.split()) != 1 or (_SLUG.fullmatch(value) and not is_unpronounceable(value)):
        return False
    if value[0] == "\\" and len(value) < 12:
        return False
    return (has_digit(value) and _has_letter(value)) or (
        len(value) >= 6 and bool(_SPECIAL.search(value))
    )


def _is_key_like(value: str) -> bool:
    """Whether a value suffices for `token = "..."`: letters with digits, or a random run."""
    words = value.split()
    if len(words) != 1 or len(value) < 8:
        return len(words) >= 12 and _SEED_PHRASE.fullmatch(value) is not None
    if len(value) >= 20 and value.isalnum() and not value.isdigit():
        return True
    if _SLUG.fullmatch(value):
        return (len(value) >= 16 and looks_random(value)) or (
            has_digit(value) and is_unpronounceable(value)
        )
    return has_digit(value) and _has_letter(value)


def _is_bare_key(value: str) -> bool:
    if _has_code_marks(value):
        return False
    if _IDENTIFIER.fullmatch(value):
        return len(value) >= 12 and looks_random(value)
    return len(value) >= 12 and _is_key_like(value) and looks_random(value)


def _is_line_key(value: str) -> bool:
    if _is_bare_key(value):
        return True
    return (
        len(value) >= 8
        and has_digit(value)
        and not _has_code_marks(value)
        and is_unpronounceable(value)
    )


def _is_call_key(value: str) -> bool:
    return (
        len(value) >= 12 and has_digit(value) and (looks_random(value) or is_unpronounceable(value))
    )


def _is_hinted_secret(value: str) -> bool:
    """Whether a value suffices for `key: ...`: long and random, and no digest, id or path."""
    value = value.removeprefix("base64:")
    if not _KEY_CHARS.fullmatch(value) or _DIGEST.fullmatch(value) or not looks_random(value):
        return False
    return not any(_is_word_like(piece) or _DIGEST.match(piece) for piece in _PIECES.split(value))


def _is_mixed_key(value: str) -> bool:
    """Whether a value has both cases and digits, and does not contain a digest."""
    return mixes_cases(value) and not any(map(_DIGEST.match, _PIECES.split(value)))


def _is_word_like(piece: str) -> bool:
    has_word_case = piece.islower() or piece.isupper() or piece.istitle() or len(piece) < 8
    return (
        piece.isalpha()
        and len(piece) >= 4
        and (has_word_case or _CAMEL_CASE.fullmatch(piece) is not None)
    )


_SAID = {ValueForm.PROSE, ValueForm.SPOKEN}
_UNSPACED = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_ALONE = {ValueForm.LINE, ValueForm.SETTING}
_ValueRule = Callable[[str], bool]
_PASSWORD_RULES: dict[ValueForm, _ValueRule] = {
    ValueForm.QUOTED: _is_quoted_password,
    ValueForm.ENV: lambda value: len(value.split()) == 1,
    ValueForm.BARE: _is_bare_password,
    ValueForm.PROSE: _is_prose_password,
    ValueForm.LINE: _is_line_password,
    ValueForm.SETTING: _is_bare_password,
    ValueForm.CALL: _is_call_password,
    ValueForm.WRAPPED: _is_wrapped_password,
    ValueForm.PHRASE: lambda value: len(set(value.split())) >= 8,
    ValueForm.SPOKEN: _is_spoken_password,
    ValueForm.RANDOM: lambda value: _is_spoken_password(value) and looks_opaque(value),
    ValueForm.QUERY: _is_query_secret,
}
_KEY_RULES: dict[ValueForm, _ValueRule] = {
    ValueForm.QUOTED: _is_key_like,
    ValueForm.ENV: _is_key_like,
    ValueForm.BARE: _is_bare_key,
    ValueForm.PROSE: _is_bare_key,
    ValueForm.LINE: _is_line_key,
    ValueForm.SETTING: _is_line_key,
    ValueForm.CALL: _is_call_key,
    ValueForm.WRAPPED: _is_call_key,
    ValueForm.PHRASE: _is_key_like,
    ValueForm.SPOKEN: _is_bare_key,
    ValueForm.RANDOM: _is_mixed_key,
    ValueForm.QUERY: _is_query_secret,
}
