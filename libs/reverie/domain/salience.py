"""How much a sentence is worth keeping, and as what kind: by its cues, English and Chinese.

A user states rules, wishes, choices and facts; an agent reports causes, changes and how things
work. What only tells that work goes on, that tests ran, or what one might consider is worth little.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reverie.domain import cues, signs
from reverie.domain.anchors import paths
from reverie.domain.kinds import Kind

_CODE = re.compile(r"`[^`]*`")
_OWN = re.compile(r"\b(?:we|i|let'?s|our|us)\b|我们", re.I)
_MEASURE = re.compile(
    r"\b\d+(?:\.\d+)?\s?(?:%|ms|s|sec(?:ond)?s?|min(?:ute)?s?|h(?:ours?)?|days?|[kmg]i?b|tokens?"
    r"|requests?|connections?|retries|chars?|characters|lines?)\b|\b\d+-(?:minute|second|hour|day)"
    r"|\w=\d",
    re.I,
)
_NAME = re.compile(
    r"`[^`]+`|\b[A-Z]{2,}_[A-Z_]+\b|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w*\b"
    r"|\b(?:GET|POST|PUT|PATCH|DELETE) /\S*|\bv?\d+\.\d+\b|\b[A-Z][\w.]+ (?:and|or|with|for) [A-Z]"
)

_FIGURE = re.compile(r"\b\d[\d.,:]*\b")
# A capital within a sentence, and what stands in quotes.
_PROPER = re.compile(
    r"(?<=[a-z0-9,;)/] )[A-Z][A-Za-z0-9]*(?:[.+#-][A-Za-z0-9]+)*\b"
    r"|(?<!\w)(['\"])[^'\"\n]{2,60}\1"
)


@dataclass(frozen=True)
class Rated:
    """What a sentence would be kept as. `worth`: below `KEPT` it is not kept."""

    kind: Kind
    worth: float


KEPT = 1.0

# In order of precedence: the first that fits names the kind of what a user says.
_USERS: tuple[tuple[Kind, re.Pattern[str], float], ...] = (
    (Kind.PREFERENCE, signs.HABIT, 4.0),
    (Kind.IDENTITY, cues.IDENTITY, 3.0),
    (Kind.CONVENTION, signs.RULE, 4.0),
    (Kind.PREFERENCE, signs.MANNERS, 4.0),
    (Kind.TASK, signs.LATER, 3.0),
    (Kind.SPEC, signs.ENSURE, 3.0),
    (Kind.DECISION, signs.CHOICE, 3.5),
    (Kind.BUG, signs.PLIGHT, 2.0),
    (Kind.SPEC, signs.DEMAND, 3.0),
    (Kind.CONTEXT, signs.STATE, 3.0),
)
# What a lead that tells of a choice makes a decision.
_LEDS = frozenset({Kind.CONTEXT, Kind.SPEC})
# What an agent itself calls a decision, at the head of a sentence.
_LABEL = re.compile(r"\W*decision\W{0,2}[:：]|\W*决定[:：]", re.I)
# What a request to do something once says by the way.
_FACTS = frozenset({Kind.SPEC, Kind.CONTEXT, Kind.BUG})


def of_user(sentence: str, quoted: bool = False) -> Rated | None:
    """What a user's sentence states; None for a question, a yes, or a bare request.

    Of what the user quotes, as a reviewer's comment or a plan, only choices count.
    """
    bare = _CODE.sub("` `", sentence)
    remember = bool(cues.REMEMBER.search(bare))
    if (is_question(bare) and not remember) or bare.endswith((":", "：")):
        return None
    if signs.NITPICK.search(bare) or cues.SUGGESTION.search(bare):
        return None
    told = signs.CONDUCT.match(bare)
    if len(re.sub(r"\([^)]*\)", "", bare).split()) < 3 and len(bare.encode()) < 24:
        return None
    chooses = [row for row in _USERS if row[0] is Kind.DECISION and _OWN.search(bare)]
    table = chooses if quoted else [] if is_question(bare) else _USERS
    for kind, cue, worth in table:
        if cue.search(bare) and not (told and kind in _FACTS):
            return Rated(kind, worth + remember)
    if remember and not quoted:
        return Rated(Kind.CONTEXT if is_question(bare) else Kind.CONVENTION, 4.0)
    if not quoted and _details(sentence) >= 2 and not told:
        return Rated(Kind.SPEC, 2.5)
    return None


def of_correction(sentence: str) -> Rated | None:
    """What a user says in putting an agent right."""
    told = len(sentence.split()) >= 6 or len(sentence.encode()) > 1.5 * len(sentence) > 12
    return Rated(Kind.LESSON, 4.0) if told and not is_question(sentence) else None


def is_question(text: str) -> bool:
    """Whether a sentence asks."""
    return text.rstrip(" \"'`)").endswith(("?", "？")) or bool(signs.ASKS.match(text))


def of_agent(text: str, lead: str = "") -> Rated:
    """What an agent's point reports. `lead`: the heading it stood under."""
    bare = _CODE.sub("` `", text)
    whole = _CODE.sub("` `", f"{lead}: {text}" if lead else text)
    if signs.POINTER.search(text):
        return Rated(Kind.REFERENCE, -9.0)
    how = bool(signs.HOW_TO.search(f"{lead}: {text}" if lead else text))
    kind = Kind.SKILL if how else _reported(bare, whole)
    chosen = signs.DECISIONS.search(lead) or signs.CHANGE.search(lead) or _LABEL.match(bare)
    if kind in _LEDS and chosen:
        kind = Kind.DECISION
    graves = bool(signs.GRAVE.search(whole))
    worth = _worth(text, bare, whole) + 1.5 * how
    return Rated(kind, worth - 2.0 * (bool(signs.PLACED.search(lead)) and not graves))


def _reported(bare: str, whole: str) -> Kind:
    """Rules and wishes are the user's to state, advice is no decision."""
    caused = cues.CAUSE.search(bare)
    if signs.PENDING.search(whole):
        return Kind.TASK
    if signs.ROOT.search(whole) or (
        cues.FAILURE.search(bare) and (caused or cues.FIX.search(bare))
    ):
        return Kind.BUG
    table = (
        (Kind.LESSON, signs.TRAP),
        (Kind.DECISION, signs.CHANGE),
        (Kind.BUG, signs.FIXED),
        (Kind.SPEC, signs.WORKS),
    )
    return next((kind for kind, cue in table if cue.search(bare)), Kind.CONTEXT)


def _worth(text: str, bare: str, whole: str) -> float:
    gains = (
        (cues.CAUSE, 2.0),
        (signs.ROOT, 1.0),
        (signs.TRAP, 1.5),
        (signs.CHANGE, 1.5),
        (signs.WORKS, 1.0),
        (signs.FIXED, 1.5),
        (cues.FAILURE, 0.5),
        (signs.GRAVE, 1.0),
        (cues.DONE, 0.5),
        (cues.FINDING, 0.5),
        (signs.PENDING, 1.0),
        (signs.HEDGE, -0.5),
        (signs.NITPICK, -2.0),
        (signs.ERRAND, -3.0),
        (signs.ADVICE, -2.0),
    )
    worth = sum(gain for cue, gain in gains if cue.search(bare))
    worth -= 3.0 * bool(signs.CHECKED.search(whole))
    worth -= 1.5 * bool(signs.TESTED.search(text))
    against = (signs.REVIEWED, cues.SUGGESTION, cues.OFFER)
    worth -= 2.0 * sum(bool(cue.search(whole) or cue.search(bare)) for cue in against)
    return worth + 0.5 * _details(text)


def _details(text: str) -> int:
    """How many sorts of exact things it names: files, names, measures, and two measures."""
    measures = len(set(_MEASURE.findall(text)))
    return bool(paths(text)) + bool(_NAME.search(text)) + min(measures, 2)


def exact_things(text: str) -> frozenset[str]:
    """The names, measures, figures and quoted words in a text, as one would look for them."""
    sorts = (_NAME, _MEASURE, _FIGURE, _PROPER)
    found = (one[0] for sort in sorts for one in sort.finditer(text))
    return frozenset(one.strip("`'\"").lower() for one in found)
