"""Credentials told by the literal they begin with, all sought in one pass over the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import ascii_letters, digits

from reverie.domain.redaction_patterns import (
    API_KEY,
    AWS_KEY,
    JWT,
    MOST_JUDGED,
    PRIVATE_KEY,
    SECRET,
    TOKEN,
    WEBHOOK,
    Check,
    Span,
    has_digit,
    looks_made,
    looks_random,
    near,
)

_ALNUM = "A-Za-z0-9"
_SAFE = r"A-Za-z0-9_\-"
_HEX = "0-9a-f"
_FILLER = re.compile(r"[xX_.\-]*")
_LONGEST = 4096
_Judged = dict[tuple[int, str], bool]
"""What was judged of shapes: by the group of the shape, and the text."""
_JUDGED = 256
"""Characters of a long run that are judged: as telling as all of it."""


@dataclass(frozen=True)
class _Shape:
    """What follows any of the prefixes, and what else must hold of it."""

    kind: str
    prefixes: str
    chars: str = _ALNUM
    least: int = 20
    check: Check | None = None
    rest: str = ""


_JWT_REST = rf"[{_SAFE}]{{8,}}+\.eyJ[{_SAFE}]{{4,}}+(?:\.[{_SAFE}]*+)?"
_UUID = rf"[{_HEX}]{{8}}(?:-[{_HEX}]{{4}}){{3}}-[{_HEX}]{{12}}"

# Where two prefixes begin alike, the longer one is tried first.
_SHAPES = (
    _Shape(API_KEY, "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-lf-", _SAFE, 16),
    _Shape(API_KEY, "sk-", _SAFE, 20, looks_made),
    _Shape(API_KEY, "rv_", _SAFE + ".", 16, looks_made),
    _Shape(AWS_KEY, "AKIA ASIA ABIA ACCA", "A-Z0-9", 16),
    _Shape(AWS_KEY, "ABSK", _ALNUM + "+/=", 100),
    _Shape(TOKEN, "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM + "_", 20, looks_made),
    _Shape(TOKEN, "github_pat_", _ALNUM + "_", 20),
    _Shape(
        TOKEN,
        "glpat- glptt- glrt- glrtr- gldt- glcbt- glft- glsoat- glimt- gloas- glffct-",
        _SAFE + ".",
        16,
    ),
    _Shape(
        TOKEN, "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", _SAFE, 10, has_digit
    ),
    _Shape(API_KEY, "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", _ALNUM, 10),
    _Shape(SECRET, "whsec_", _ALNUM + "+/=", 16),
    _Shape(API_KEY, "AIza", _SAFE, 30, looks_made),
    _Shape(TOKEN, "ya29. 1//0", _SAFE, 20, looks_made),
    _Shape(SECRET, "GOCSPX-", _SAFE, 20),
    _Shape(TOKEN, "npm_", _ALNUM, 30),
    _Shape(TOKEN, "pypi-", _SAFE, 40, looks_made),
    _Shape(TOKEN, "hf_", _ALNUM, 28),
    _Shape(TOKEN, "doo_v1_ dop_v1_ dor_v1_", _HEX, 40),
    _Shape(API_KEY, "SK dapi key-", _HEX, 32),
    _Shape(TOKEN, "shpat_ shpca_ shppa_ shpss_", "0-9a-fA-F", 32),
    _Shape(TOKEN, "sq0atp- sq0csp- sq0idp-", _SAFE, 22),
    _Shape(
        API_KEY,
        "gsk_ r8_ lin_api_ lin_oauth_ nvapi- pplx- xai- tvly- sbp_ figd_ figu_ jina_ fc- pa- e2b_",
        _SAFE,
        28,
        looks_made,
    ),
    _Shape(
        TOKEN,
        "dckr_pat_ dckr_oat_ hvs. hvb. hvr. glsa_ NRAK- NRJS- NRRA- NRII- PMAK- tskey- sntrys_ "
        "sntryu_ pscale_tkn_ pscale_pw_ pscale_oauth_ sb_secret_ xkeysib- xsmtpsib- squ_ sqp_ "
        "sqa_ nfp_ napi_ phx_ xaat- pylf_v1_ bkua_ CCIPAT_ CLOJARS_ sgp_ rdme_ duffel_live_ "
        "duffel_test_ shippo_live_ shippo_test_ FLWSECK- FLWSECK_TEST- EZAK EZTK lsv2_pt_ lsv2_sk_",
        _SAFE,
        20,
        looks_made,
    ),
    _Shape(
        TOKEN,
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. pul- ntn_ CFPAT- AKCp fio-u- dt0c01. "
        "dt0s01. fo1_ tfp_ ico- pnu_ dnkey- rnd_ vcp_",
        _SAFE + ".",
        24,
        looks_made,
    ),
    _Shape(TOKEN, "ops_eyJ glc_eyJ EAACEdEose0cBA glagent- sl. cmVmd", _SAFE, 24, looks_made),
    _Shape(API_KEY, "LTAI AKID rzp_live_ rzp_test_ secret_", _ALNUM, 14, looks_made),
    _Shape(TOKEN, "ATBB ATCTT3", _SAFE + "=", 20, looks_made),
    _Shape(TOKEN, "EAAA EAAC EAAG", _SAFE, 55, looks_made),
    _Shape(TOKEN, "rubygems_", _HEX, 48),
    _Shape(TOKEN, "ATATT3", _SAFE + "=", 50),
    _Shape(TOKEN, "gAAAAA", _SAFE + "=", 60, looks_random),
    _Shape(TOKEN, "FlyV1 ", "A-Za-z0-9_,+/=", 40, looks_made),
    _Shape(PRIVATE_KEY, "AGE-SECRET-KEY-1", "A-Z0-9", 40),
    _Shape(PRIVATE_KEY, "SA SU SO SN SC SX", "A-Z2-7", 56),
    _Shape(TOKEN, "HRKU-", rest=rf"(?:{_UUID}|AA[{_SAFE}]{{40,}}+)"),
    _Shape(TOKEN, "pat-na1- pat-eu1-", rest=_UUID),
    _Shape(TOKEN, "SG.", rest=rf"[{_SAFE}]{{16,}}+\.[{_SAFE}]{{16,}}+"),
    _Shape(TOKEN, "pat", rest=rf"[{_ALNUM}]{{14}}\.[{_HEX}]{{64}}"),
    _Shape(JWT, "eyJ", rest=_JWT_REST),
)


def _heads() -> dict[str, list[tuple[str, _Shape]]]:
    """The prefixes without their first letter, by that letter, the longest first."""
    by_letter: dict[str, list[tuple[str, _Shape]]] = {}
    for shape in _SHAPES:
        for prefix in re.findall(r"\S+ ?(?=$)|\S+", shape.prefixes):
            by_letter.setdefault(prefix[0], []).append((prefix[1:], shape))
    for heads in by_letter.values():
        heads.sort(key=lambda head: len(head[0]), reverse=True)
    return by_letter


def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], list[_Shape]]:
    """Two expressions for all shapes, and the shape of each of their groups.

    Before a shape stands what is no letter or digit, which is part of the match: so the search
    skips from one such mark to the next. The second expression is for what follows `\\n` written
    out, as in JSON, where the letter n belongs to the escape.
    """
    branches, shapes = [], [_SHAPES[0]]
    for letter, heads in _heads().items():
        bodies = []
        for head, shape in heads:
            rest = shape.rest or rf"[{shape.chars}]{{{shape.least},{_LONGEST}}}+"
            bodies.append(f"{re.escape(head)}({rest})")
            shapes.append(shape)
        seconds = "".join(sorted({re.escape(head[0]) for head, _ in heads}))
        branches.append(f"{letter}(?=[{seconds}])(?:{'|'.join(bodies)})")
    any_of = f"(?=[{''.join(_heads())}])(?:{'|'.join(branches)})"
    return re.compile(rf"[^{_ALNUM}]{any_of}"), re.compile(rf"\\[nrt]{any_of}"), shapes


_BARE, _ESCAPED, _GROUPS = _patterns()

_slack = r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/\-]{20,4096}+)"
_bot_id = rf"([0-9](?<![0-9][0-9])[0-9]{{7,9}}:AA[{_SAFE}]{{32,34}}+)(?![{_SAFE}])"
_bot = (
    rf"([MNO](?<![{_SAFE}.][MNO])[{_SAFE}]{{22,26}}\.[{_SAFE}]{{6}}\.[{_SAFE}]{{27,38}}+)"
    rf"(?![{_SAFE}.])"
)
_teams = r"webhook\.office\.com/webhookb2/([\w@/\-]{40,4096}+)"
_discord = r"/api/webhooks/(\d{10,24}/[\w\-]{40,4096}+)"
_azure = rf"(?<![{_SAFE}.~])([{_SAFE}.]{{3}}[0-9]Q~[{_SAFE}.~]{{31,34}}+)(?![{_SAFE}~])"
_mailchimp = rf"-us(?<=(?<![{_ALNUM}])([{_HEX}]{{32}}-us))(?=\d{{1,2}}(?!\w))"
_atlas = rf"(?<![{_ALNUM}])([{_ALNUM}]{{14}}\.atlasv1\.[{_SAFE}=]{{60,70}}+)"
_braintree = rf"access_token(\$(?:production|sandbox)\$[{_ALNUM}]{{16}}\$[{_HEX}]{{32}})"
_plaid = rf"access-(?<!\waccess-)(?:sandbox|development|production)-({_UUID})"
_ldap = rf"(\{{S?(?:SHA|MD5|SSHA)\d{{0,3}}\}}[{_ALNUM}+/=]{{20,256}}+)"
_crypted = r"(\$(?:1|2[abxy]?|5|6|7|y|apr1|argon2id?|scrypt)\$[\w./$=,+\-]{22,256}+)"

# Those told by a literal within: the literal, the expression, and what else must hold.
_INNER: tuple[tuple[str, str, re.Pattern[str], Callable[[str], bool]], ...] = (
    (WEBHOOK, "hooks.slack.com/", re.compile(_slack), has_digit),
    (WEBHOOK, "webhook.office.com/", re.compile(_teams), has_digit),
    (WEBHOOK, "/api/webhooks/", re.compile(_discord), has_digit),
    # A bot's number, then its token; a bot's id in base64, the time, the signature.
    (TOKEN, ":AA", re.compile(_bot_id), has_digit),
    (TOKEN, ".", re.compile(_bot), looks_random),
    (SECRET, "Q~", re.compile(_azure), has_digit),
    (API_KEY, "-us", re.compile(_mailchimp), has_digit),
    (TOKEN, ".atlasv1.", re.compile(_atlas), has_digit),
    (TOKEN, "access_token$", re.compile(_braintree), has_digit),
    (TOKEN, "access-", re.compile(_plaid), has_digit),
    (SECRET, "$", re.compile(_crypted), has_digit),
    (SECRET, "}", re.compile(_ldap), has_digit),
)


_SHORTEST = 15
"""Characters without a blank or mark that each shape has at least."""
_BEFORE, _AFTER = 8, 4
"""Characters beside such a run that may belong to it, or tell where a credential begins."""
_MANY = 2_000


def _joining(marks: str) -> bytes:
    """The table that makes one letter of letters, digits and the marks, and blanks of others."""
    joined = (chr(code) in _LETTERS_AND_DIGITS + marks for code in range(256))
    return bytes(ord("a" if joins else " ") for joins in joined)


_LETTERS_AND_DIGITS = ascii_letters + digits
_JOINED, _JOINED_BASE64 = _joining("_-."), _joining("_-.+/,")
_BASE64 = ("ABSK", "whsec_", "FlyV1 ")
"""The prefixes of those that hold other marks within the run."""


def _runs(text: str) -> list[tuple[int, int]]:
    """Where the text holds runs long enough for a credential; all of it where there are many."""
    table = _JOINED_BASE64 if any(prefix in text for prefix in _BASE64) else _JOINED
    joined = text.encode("ascii", "replace").translate(table) + b" "
    least, runs, position = b"a" * _SHORTEST, list[tuple[int, int]](), 0
    while (start := joined.find(least, position)) >= 0:
        if len(runs) >= _MANY:
            return [*runs, (max(0, start - _BEFORE), len(text))]
        position = joined.find(b" ", start)
        runs.append((max(0, start - _BEFORE), position + _AFTER))
    return runs


def shaped(text: str) -> Iterator[Span]:
    """Credentials told by the literal they begin with, or by one within."""
    end, padded, judged = 0, f" {text}", _Judged()
    for start, stop in _runs(text):
        for span in _begun(padded, _BARE, max(start, end), stop, judged):
            end = span[1]
            yield span
    if "\\" in text:
        yield from _begun(padded, _ESCAPED, 0, len(text), judged)
    for kind, literal, pattern, check in _INNER:
        yield from _inner(text, kind, literal, pattern, check)


def _begun(
    padded: str, pattern: re.Pattern[str], position: int, stop: int, judged: _Judged
) -> Iterator[Span]:
    """Those of a part of the text, which follows one blank, that begin by their literal."""
    looked, edge = -1, 1 if pattern is _BARE else 2
    while match := pattern.search(padded, position, stop + 1):
        start, end = match.start() + edge - 1, match.end() - 1
        group = match.lastindex or 0
        if _holds(group, match[group], judged):
            yield start, end, _GROUPS[group].kind
            position = end
        elif start >= looked:
            # What was refused may hold another one: looked into once.
            position, looked = start + 2, end
        else:
            position = end


def _inner(
    text: str, kind: str, literal: str, pattern: re.Pattern[str], check: Check
) -> Iterator[Span]:
    for start, stop in near(literal, text):
        for match in pattern.finditer(text, start, stop):
            if check(match[1]):
                yield *match.span(1), kind


def _holds(group: int, value: str, judged: _Judged) -> bool:
    """Whether it is more than a shape; where very many were judged, any other is taken for one."""
    seen = group, value[:_JUDGED]
    if seen not in judged:
        if len(judged) >= MOST_JUDGED:
            return True
        check = _GROUPS[group].check
        judged[seen] = not _FILLER.fullmatch(seen[1]) and (check is None or check(seen[1]))
    return judged[seen]
