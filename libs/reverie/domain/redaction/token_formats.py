"""Detection of credentials with a known format, such as provider tokens with a fixed prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import ascii_letters, digits

from reverie.domain.redaction.patterns import (
    API_KEY,
    AWS_KEY,
    JWT,
    MAX_JUDGED,
    PRIVATE_KEY,
    SECRET,
    TOKEN,
    WEBHOOK,
    SecretSpan,
    ValueCheck,
    has_digit,
    looks_generated,
    looks_random,
    ranges_around,
)

_ALNUM = "A-Za-z0-9"
_SAFE = r"A-Za-z0-9_\-"
_HEX = "0-9a-f"
_FILLER = re.compile(r"[xX_.\-]*")
_MAX_LENGTH = 4096
_VerdictCache = dict[tuple[int, str], bool]
"""What was judged of shapes: by the group of the shape, and the text."""
_JUDGED_CHARS = 256
"""Characters of a long run that are judged: as telling as all of it."""


@dataclass(frozen=True)
class _TokenFormat:
    """What follows any of the prefixes, and what else must hold of it."""

    kind: str
    prefixes: str
    chars: str = _ALNUM
    min_length: int = 20
    check: ValueCheck | None = None
    rest: str = ""


_JWT_REST = rf"[{_SAFE}]{{8,}}+\.eyJ[{_SAFE}]{{4,}}+(?:\.[{_SAFE}]*+)?"
_UUID = rf"[{_HEX}]{{8}}(?:-[{_HEX}]{{4}}){{3}}-[{_HEX}]{{12}}"

# Where two prefixes begin alike, the longer one is tried first.
_TOKEN_FORMATS = (
    _TokenFormat(API_KEY, "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-lf-", _SAFE, 16),
    _TokenFormat(API_KEY, "sk-", _SAFE, 20, looks_generated),
    _TokenFormat(API_KEY, "rv_", _SAFE + ".", 16, looks_generated),
    _TokenFormat(AWS_KEY, "AKIA ASIA ABIA ACCA", "A-Z0-9", 16),
    _TokenFormat(AWS_KEY, "ABSK", _ALNUM + "+/=", 100),
    _TokenFormat(TOKEN, "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM + "_", 20, looks_generated),
    _TokenFormat(TOKEN, "github_pat_", _ALNUM + "_", 20),
    _TokenFormat(
        TOKEN,
        "glpat- glptt- glrt- glrtr- gldt- glcbt- glft- glsoat- glimt- gloas- glffct-",
        _SAFE + ".",
        16,
    ),
    _TokenFormat(
        TOKEN, "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", _SAFE, 10, has_digit
    ),
    _TokenFormat(API_KEY, "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", _ALNUM, 10),
    _TokenFormat(SECRET, "whsec_", _ALNUM + "+/=", 16),
    _TokenFormat(API_KEY, "AIza", _SAFE, 30, looks_generated),
    _TokenFormat(TOKEN, "ya29. 1//0", _SAFE, 20, looks_generated),
    _TokenFormat(SECRET, "GOCSPX-", _SAFE, 20),
    _TokenFormat(TOKEN, "npm_", _ALNUM, 30),
    _TokenFormat(TOKEN, "pypi-", _SAFE, 40, looks_generated),
    _TokenFormat(TOKEN, "hf_", _ALNUM, 28),
    _TokenFormat(TOKEN, "doo_v1_ dop_v1_ dor_v1_", _HEX, 40),
    _TokenFormat(API_KEY, "SK dapi key-", _HEX, 32),
    _TokenFormat(TOKEN, "shpat_ shpca_ shppa_ shpss_", "0-9a-fA-F", 32),
    _TokenFormat(TOKEN, "sq0atp- sq0csp- sq0idp-", _SAFE, 22),
    _TokenFormat(
        API_KEY,
        "gsk_ r8_ lin_api_ lin_oauth_ nvapi- pplx- xai- tvly- sbp_ figd_ figu_ jina_ fc- pa- e2b_",
        _SAFE,
        28,
        looks_generated,
    ),
    _TokenFormat(
        TOKEN,
        "dckr_pat_ dckr_oat_ hvs. hvb. hvr. glsa_ NRAK- NRJS- NRRA- NRII- PMAK- tskey- sntrys_ "
        "sntryu_ pscale_tkn_ pscale_pw_ pscale_oauth_ sb_secret_ xkeysib- xsmtpsib- squ_ sqp_ "
        "sqa_ nfp_ napi_ phx_ xaat- pylf_v1_ bkua_ CCIPAT_ CLOJARS_ sgp_ rdme_ duffel_live_ "
        "duffel_test_ shippo_live_ shippo_test_ FLWSECK- FLWSECK_TEST- EZAK EZTK lsv2_pt_ lsv2_sk_",
        _SAFE,
        20,
        looks_generated,
    ),
    _TokenFormat(
        TOKEN,
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. pul- ntn_ CFPAT- AKCp fio-u- dt0c01. "
        "dt0s01. fo1_ tfp_ ico- pnu_ dnkey- rnd_ vcp_",
        _SAFE + ".",
        24,
        looks_generated,
    ),
    _TokenFormat(
        TOKEN, "ops_eyJ glc_eyJ EAACEdEose0cBA glagent- sl. cmVmd", _SAFE, 24, looks_generated
    ),
    _TokenFormat(API_KEY, "LTAI AKID rzp_live_ rzp_test_ secret_", _ALNUM, 14, looks_generated),
    _TokenFormat(TOKEN, "ATBB ATCTT3", _SAFE + "=", 20, looks_generated),
    _TokenFormat(TOKEN, "EAAA EAAC EAAG", _SAFE, 55, looks_generated),
    _TokenFormat(TOKEN, "rubygems_", _HEX, 48),
    _TokenFormat(TOKEN, "ATATT3", _SAFE + "=", 50),
    _TokenFormat(TOKEN, "gAAAAA", _SAFE + "=", 60, looks_random),
    _TokenFormat(TOKEN, "FlyV1 ", "A-Za-z0-9_,+/=", 40, looks_generated),
    _TokenFormat(PRIVATE_KEY, "AGE-SECRET-KEY-1", "A-Z0-9", 40),
    _TokenFormat(PRIVATE_KEY, "SA SU SO SN SC SX", "A-Z2-7", 56),
    _TokenFormat(TOKEN, "HRKU-", rest=rf"(?:{_UUID}|AA[{_SAFE}]{{40,}}+)"),
    _TokenFormat(TOKEN, "pat-na1- pat-eu1-", rest=_UUID),
    _TokenFormat(TOKEN, "SG.", rest=rf"[{_SAFE}]{{16,}}+\.[{_SAFE}]{{16,}}+"),
    _TokenFormat(TOKEN, "pat", rest=rf"[{_ALNUM}]{{14}}\.[{_HEX}]{{64}}"),
    _TokenFormat(JWT, "eyJ", rest=_JWT_REST),
)


def _prefixes_by_letter() -> dict[str, list[tuple[str, _TokenFormat]]]:
    """The prefixes without their first letter, by that letter, the longest first."""
    by_letter: dict[str, list[tuple[str, _TokenFormat]]] = {}
    for token_format in _TOKEN_FORMATS:
        for prefix in re.findall(r"\S+ ?(?=$)|\S+", token_format.prefixes):
            by_letter.setdefault(prefix[0], []).append((prefix[1:], token_format))
    for prefixes in by_letter.values():
        prefixes.sort(key=lambda prefix_entry: len(prefix_entry[0]), reverse=True)
    return by_letter


def _compile_patterns() -> tuple[re.Pattern[str], re.Pattern[str], list[_TokenFormat]]:
    """Two expressions for all shapes, and the shape of each of their groups.

    Before a shape stands what is no letter or digit, which is part of the match: so the search
    skips from one such mark to the next. The second expression is for what follows `\\n` written
    out, as in JSON, where the letter n belongs to the escape.
    """
    branches, formats = [], [_TOKEN_FORMATS[0]]
    for letter, prefixes in _prefixes_by_letter().items():
        bodies = []
        for prefix, token_format in prefixes:
            rest = (
                token_format.rest
                or rf"[{token_format.chars}]{{{token_format.min_length},{_MAX_LENGTH}}}+"
            )
            bodies.append(f"{re.escape(prefix)}({rest})")
            formats.append(token_format)
        second_letters = "".join(sorted({re.escape(prefix[0]) for prefix, _ in prefixes}))
        branches.append(f"{letter}(?=[{second_letters}])(?:{'|'.join(bodies)})")
    any_format = f"(?=[{''.join(_prefixes_by_letter())}])(?:{'|'.join(branches)})"
    return re.compile(rf"[^{_ALNUM}]{any_format}"), re.compile(rf"\\[nrt]{any_format}"), formats


_PLAIN_PATTERN, _ESCAPED_PATTERN, _FORMAT_BY_GROUP = _compile_patterns()

_SLACK_WEBHOOK = r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/\-]{20,4096}+)"
_TELEGRAM_BOT = rf"([0-9](?<![0-9][0-9])[0-9]{{7,9}}:AA[{_SAFE}]{{32,34}}+)(?![{_SAFE}])"
_DISCORD_BOT = (
    rf"([MNO](?<![{_SAFE}.][MNO])[{_SAFE}]{{22,26}}\.[{_SAFE}]{{6}}\.[{_SAFE}]{{27,38}}+)"
    rf"(?![{_SAFE}.])"
)
_TEAMS_WEBHOOK = r"webhook\.office\.com/webhookb2/([\w@/\-]{40,4096}+)"
_DISCORD_WEBHOOK = r"/api/webhooks/(\d{10,24}/[\w\-]{40,4096}+)"
_AZURE_SECRET = rf"(?<![{_SAFE}.~])([{_SAFE}.]{{3}}[0-9]Q~[{_SAFE}.~]{{31,34}}+)(?![{_SAFE}~])"
_MAILCHIMP_KEY = rf"-us(?<=(?<![{_ALNUM}])([{_HEX}]{{32}}-us))(?=\d{{1,2}}(?!\w))"
_TERRAFORM_TOKEN = rf"(?<![{_ALNUM}])([{_ALNUM}]{{14}}\.atlasv1\.[{_SAFE}=]{{60,70}}+)"
_BRAINTREE_TOKEN = rf"access_token(\$(?:production|sandbox)\$[{_ALNUM}]{{16}}\$[{_HEX}]{{32}})"
_PLAID_TOKEN = rf"access-(?<!\waccess-)(?:sandbox|development|production)-({_UUID})"
_LDAP_HASH = rf"(\{{S?(?:SHA|MD5|SSHA)\d{{0,3}}\}}[{_ALNUM}+/=]{{20,256}}+)"
_CRYPT_HASH = r"(\$(?:1|2[abxy]?|5|6|7|y|apr1|argon2id?|scrypt)\$[\w./$=,+\-]{22,256}+)"

# Those told by a literal within: the literal, the expression, and what else must hold.
_INNER_FORMATS: tuple[tuple[str, str, re.Pattern[str], Callable[[str], bool]], ...] = (
    (WEBHOOK, "hooks.slack.com/", re.compile(_SLACK_WEBHOOK), has_digit),
    (WEBHOOK, "webhook.office.com/", re.compile(_TEAMS_WEBHOOK), has_digit),
    (WEBHOOK, "/api/webhooks/", re.compile(_DISCORD_WEBHOOK), has_digit),
    # A bot's number, then its token; a bot's id in base64, the time, the signature.
    (TOKEN, ":AA", re.compile(_TELEGRAM_BOT), has_digit),
    (TOKEN, ".", re.compile(_DISCORD_BOT), looks_random),
    (SECRET, "Q~", re.compile(_AZURE_SECRET), has_digit),
    (API_KEY, "-us", re.compile(_MAILCHIMP_KEY), has_digit),
    (TOKEN, ".atlasv1.", re.compile(_TERRAFORM_TOKEN), has_digit),
    (TOKEN, "access_token$", re.compile(_BRAINTREE_TOKEN), has_digit),
    (TOKEN, "access-", re.compile(_PLAID_TOKEN), has_digit),
    (SECRET, "$", re.compile(_CRYPT_HASH), has_digit),
    (SECRET, "}", re.compile(_LDAP_HASH), has_digit),
)


_MIN_RUN = 15
"""Characters without a blank or mark that each shape has at least."""
_MARGIN_BEFORE, _MARGIN_AFTER = 8, 4
"""Characters beside such a run that may belong to it, or tell where a credential begins."""
_MAX_RUNS = 2_000


def _build_run_table(marks: str) -> bytes:
    """The table that makes one letter of letters, digits and the marks, and blanks of others."""
    is_run_char = (chr(code) in _LETTERS_AND_DIGITS + marks for code in range(256))
    return bytes(ord("a" if in_run else " ") for in_run in is_run_char)


_LETTERS_AND_DIGITS = ascii_letters + digits
_RUN_TABLE, _BASE64_RUN_TABLE = _build_run_table("_-."), _build_run_table("_-.+/,")
_BASE64_PREFIXES = ("ABSK", "whsec_", "FlyV1 ")
"""The prefixes of those that hold other marks within the run."""


def _find_runs(text: str) -> list[tuple[int, int]]:
    """Where the text holds runs long enough for a credential; all of it where there are many."""
    table = _BASE64_RUN_TABLE if any(prefix in text for prefix in _BASE64_PREFIXES) else _RUN_TABLE
    marked = text.encode("ascii", "replace").translate(table) + b" "
    min_run, runs, position = b"a" * _MIN_RUN, list[tuple[int, int]](), 0
    while (start := marked.find(min_run, position)) >= 0:
        if len(runs) >= _MAX_RUNS:
            return [*runs, (max(0, start - _MARGIN_BEFORE), len(text))]
        position = marked.find(b" ", start)
        runs.append((max(0, start - _MARGIN_BEFORE), position + _MARGIN_AFTER))
    return runs


def find_known_tokens(text: str) -> Iterator[SecretSpan]:
    """Credentials told by the literal they begin with, or by one within."""
    end, padded, cache = 0, f" {text}", _VerdictCache()
    for start, stop in _find_runs(text):
        for span in _find_prefixed(padded, _PLAIN_PATTERN, max(start, end), stop, cache):
            end = span[1]
            yield span
    if "\\" in text:
        yield from _find_prefixed(padded, _ESCAPED_PATTERN, 0, len(text), cache)
    for kind, literal, pattern, check in _INNER_FORMATS:
        yield from _find_inner(text, kind, literal, pattern, check)


def _find_prefixed(
    padded: str, pattern: re.Pattern[str], position: int, stop: int, cache: _VerdictCache
) -> Iterator[SecretSpan]:
    """Those of a part of the text, which follows one blank, that begin by their literal."""
    searched_to, margin = -1, 1 if pattern is _PLAIN_PATTERN else 2
    while match := pattern.search(padded, position, stop + 1):
        start, end = match.start() + margin - 1, match.end() - 1
        group = match.lastindex or 0
        if _is_token(group, match[group], cache):
            yield start, end, _FORMAT_BY_GROUP[group].kind
            position = end
        elif start >= searched_to:
            # What was refused may hold another one: looked into once.
            position, searched_to = start + 2, end
        else:
            position = end


def _find_inner(
    text: str, kind: str, literal: str, pattern: re.Pattern[str], check: ValueCheck
) -> Iterator[SecretSpan]:
    for start, stop in ranges_around(literal, text):
        for match in pattern.finditer(text, start, stop):
            if check(match[1]):
                yield *match.span(1), kind


def _is_token(group: int, value: str, cache: _VerdictCache) -> bool:
    """Whether it is more than a shape; where very many were judged, any other is taken for one."""
    cache_key = group, value[:_JUDGED_CHARS]
    if cache_key not in cache:
        if len(cache) >= MAX_JUDGED:
            return True
        check = _FORMAT_BY_GROUP[group].check
        cache[cache_key] = not _FILLER.fullmatch(cache_key[1]) and (
            check is None or check(cache_key[1])
        )
    return cache[cache_key]
