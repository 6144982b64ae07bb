"""Keywords in names that indicate a secret, and the kind of secret that each indicates."""

from __future__ import annotations

import re

from reverie.domain.redaction.matching import (
    API_KEY,
    MAX_JUDGED,
    PASSWORD,
    PLACEHOLDER_PREFIX,
    SECRET,
    TOKEN,
)
from reverie.domain.redaction.value_checks import ValueForm, is_secret
from reverie.domain.text.characters import word_set

WEAK = "WEAK"
"""Kind of a name that only hints at a secret: its value must look random."""

# Each begins with a literal of its own, so that the search skips from one to the next.
KEYWORDS = (
    (PASSWORD, r"passwor[dt]s?|passwd|passphrase|passcode"),
    (PASSWORD, r"pass(?!w|phrase|code)"),
    (PASSWORD, r"pwd"),
    (PASSWORD, r"pw(?<![a-z0-9]pw)(?!d)"),
    (PASSWORD, r"kennwort"),
    (PASSWORD, r"contraseña"),
    (PASSWORD, r"mot de passe"),
    (PASSWORD, r"senha(?<![a-z]senha)"),
    (PASSWORD, r"пароль"),
    (PASSWORD, r"密[码碼]"),
    (PASSWORD, r"パスワード"),
    (PASSWORD, r"비밀번호"),
    (PASSWORD, r"비번"),
    (PASSWORD, r"口令"),
    (PASSWORD, r"授权码"),
    (PASSWORD, r"clave(?<![a-z]clave)(?:[ ]de[ ][a-z]{2,10})?"),
    (PASSWORD, r"parola(?<![a-z]parola)"),
    (PASSWORD, r"hasło"),
    (PASSWORD, r"wachtwoord"),
    (PASSWORD, r"lösenord"),
    (PASSWORD, r"psw(?<![a-z0-9]psw)d?"),
    (SECRET, r"secret"),
    (TOKEN, r"token"),
    (TOKEN, r"root_token_id"),
    (TOKEN, r"credentials?"),
    (TOKEN, r"jwt"),
    (TOKEN, r"bearer"),
    (TOKEN, r"dockerconfigjson"),
    (API_KEY, r"key"),
    (WEAK, r"_pat(?![a-z])"),
    (WEAK, r"signing"),
    (WEAK, r"auth"),
    (WEAK, r"cookie"),
    (WEAK, r"sig(?<![a-z0-9]sig)"),
    (WEAK, r"signature"),
    (SECRET, r"salt"),
    (SECRET, r"pepper"),
    (SECRET, r"mnemonic"),
    (SECRET, r"psk(?<![a-z0-9]psk)"),
    (TOKEN, r"nonce"),
    (TOKEN, r"seed"),
)
"""Expressions of words in lower case, each with its kind."""

_KEYWORD_PATTERNS = tuple((kind, re.compile(rf"(?:{word})(?P<tail>.*)")) for kind, word in KEYWORDS)
KEYWORD_PATTERN = re.compile("|".join(word for _, word in KEYWORDS))
"""Finds any of the words."""
_KEY_QUALIFIER = re.compile(
    r"(?:api|app|access|auth|private|encryption|encrypt|signing|sign|master|account|shared|"
    r"subscription|service|admin|storage|client|server|consumer|crypto|aes|hmac|jwt|cipher|"
    r"license|deploy|webhook|secret|validation|instrumentation|priv|ingest|write|integration|"
    r"management|preshared|pre_shared|decryption|decrypt|wpa|recovery|unseal)[_\-. ]?\Z"
)
_TAILS = word_set(
    "base key key_base access_key value val str string text prod production dev development "
    "staging stage test live main primary secondary old new current default raw plain plain_text "
    "hex b64 base64 data too value values confirmation confirm repeat again or_key"
)
_BARE_TAILS = frozenset(tail.replace("_", "") for tail in _TAILS)
TAIL_PATTERN = (
    rf"[_\-]{{0,24}}+(?:s|{'|'.join(sorted(_TAILS, reverse=True)).replace('_', '[_-]?')})?"
    r"[_\-0-9]{0,24}+(?![a-z])"
)
"""A rough filter of what may follow a keyword, so that most other names fail early."""


def classify_name(name: str) -> str | None:
    """The kind of secret that a name promises; `WEAK` if it only hints at one; else None."""
    lower = name.lower()
    for kind, pattern in _KEYWORD_PATTERNS:
        match = pattern.search(lower)
        name_kind = match and classify_match(kind, lower, match)
        if name_kind:
            return name_kind
    return None


def classify_match(kind: str, lower: str, match: re.Match[str]) -> str | None:
    """Returns the kind of secret in the name of a match, with the words next to its keyword."""
    tail = match["tail"]
    if tail and not is_allowed_tail(tail):
        return None
    if kind == API_KEY and not _KEY_QUALIFIER.search(
        lower, max(0, match.start() - 16), match.start()
    ):
        return WEAK
    return WEAK if kind != PASSWORD and _normalize_tail(tail) == "s" else kind


def is_allowed_tail(tail: str) -> bool:
    """Whether a name with this text after its keyword still promises a secret."""
    normalized = _normalize_tail(tail)
    return normalized in {"", "s"} or normalized in _BARE_TAILS


def _normalize_tail(tail: str) -> str:
    return tail.replace("_", "").replace("-", "").rstrip("0123456789")


def classify_name_cached(name: str, kinds: dict[str, str | None]) -> str | None:
    """`classify_name` with a cache. Once it is full, any name with a keyword promises a secret."""
    if name not in kinds:
        if len(kinds) >= MAX_JUDGED:
            return SECRET if KEYWORD_PATTERN.search(name.lower()) else None
        kinds[name] = classify_name(name)
    return kinds[name]


def judge_value_cached(
    kind: str, value: str, form: ValueForm, cache: dict[tuple[str, str], str | None]
) -> str | None:
    """The kind of secret that a value is, or None.

    Once `cache` is full, every value but a placeholder is a secret.
    """
    cache_key = (kind, value)
    if cache_key not in cache:
        if len(cache) >= MAX_JUDGED:
            return None if PLACEHOLDER_PREFIX in value else SECRET
        cache[cache_key] = (
            (SECRET if kind == WEAK else kind) if is_secret(*cache_key, form) else None
        )
    return cache[cache_key]
