"""The words that a message is recalled by. Pure."""

from __future__ import annotations

from reverie.domain.fence import strip
from reverie.domain.question import Reading
from reverie.domain.statements import spaced
from reverie.domain.words import query_text

ASKED_CHARS = 2_000
"""Of a longer message, its beginning and end are asked by: between them stands what is pasted."""
MOST = 24

_STOP = spaced(
    """
    a about after all also am an and any are as at be because been before but by can could did
    do does doing done for from get give go had has have he hello help her here hi how i if in
    into is it its just know let like make may me might more my need new next no not now of ok
    on or our out over please say see she should show so some sure tell than thank thanks that
    the their them then there these they this those to too try up us use want was we were what
    when where which who why will with would yes you your
    """
)


def asked(message: str) -> str:
    """What a message asks: less the recalled memory in it, and less the middle of a long one."""
    own = strip(message).strip()
    if len(own) <= ASKED_CHARS:
        return own
    half = ASKED_CHARS // 2
    return f"{own[:half]}\n{own[-half:]}"


def keywords(text: str, reading: Reading) -> list[str]:
    """Paths, identifiers and phrases as written, then the telling words; at most 24."""
    whole = [*reading.paths, *reading.identifiers, *reading.phrases]
    parts = set(query_text(" ".join(whole)).split())
    words = [word for word in query_text(text).split() if word not in parts and _tells(word)]
    return list(dict.fromkeys([*whole, *words]))[:MOST]


def _tells(word: str) -> bool:
    return len(word) > (2 if word.isascii() else 1) and word not in _STOP
