"""The wording of a record: without frames of talk, without repetition, proposals as statements."""

from __future__ import annotations

import re

from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.extraction.wording.salience import extract_exact_terms
from reverie.domain.text.index_terms import content_words

MAX_CAPTION_WORDS = 3
MIN_PROPOSAL_WORDS = 3

_ORDER_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|so|now|next|and|then|also|great|good),? )*"
    r"(?:let['’]?s (?:also |now |just |please )*(?!not\b)|(?:it'?s )?time to |please )(?=[a-z])",
    re.I,
)
_ASKING = (
    r"(?:what|why|how|which|who|where|when|is|are|was|were|do|does|did|can|could|should|would|will"
    r"|has|have)"
)
# A clause in front of a question that names nothing: "Changing the subject a bit, what about ...?"
_EMPTY_CLAUSE = re.compile(
    rf"^(?!(?i:{_ASKING}|if|for|in|on|at|with|after|before|given|since|as|because|during|under|by"
    rf"|from|to|without)\b)[A-Za-z][a-z' -]{{2,40}}[,:—–-]+ +(?={_ASKING}(?:'s|n'?t|'re)?\b.*\?$)"
)
_ADVERB = re.compile(
    r"(?:^|(?<=[.!?] ))(?:(?:specifically|in particular|basically|also|plus|anyway|crucially"
    r"|importantly),|noticed? that"
    r"|the (?:simulation|test|output|analysis|measurement) (?:confirms?|shows?) that) +(.)"
    r"|^(?:instead of|rather than|despite) [^,.;]{0,40}\b(?:it|that|this)\b[^,.;]{0,20}, +(.)",
    re.I,
)
_RECAP_LABEL = re.compile(
    r"^(?:(?:full|short|quick|complete|final|whole) )?(?:recap|summary|settled|agreed|decided"
    r"|decision|决定|to be explicit(?: about [^:]{0,60})?)(?: (?:then|now|again))?\s*[:：—–-]+\s*",
    re.I,
)
_FINISHED = re.compile(
    r"^(?:all )?(?:implemented|updated|added|changed|refactored|fixed|done)[.!:]*$", re.I
)
_PROPOSING = re.compile(
    r"\b(?:i['’]?ll|i will|i['’]d|i would|(?:should|shall|could|can) (?:i|we)"
    r"|we (?:could|can|should)|i could|i propose(?: to| that we)?|let['’]?s|how about|what about"
    r"|why not|why don'?t we"
    r"|want me to|(?:do|would) you (?:want|like) me to"
    r"|my (?:\w+ )?(?:instinct|suggestion|plan|proposal|inclination|default)(?: (?:is|would be))?"
    r"(?: to)?:?)(?: just| simply)?[ :,]+(?=\S)",
    re.I,
)
_CODE_NAME = re.compile(r"\w*[_.(]\w|\w+/\w")
# What a proposal is bound to: "When nothing is left, should I ...?"
_CONDITION = re.compile(r"\b(?:when|if|for|on|in|before|after)\b[^.;?!—–]{0,300}, *$", re.I)


def drop_frame(sentence: str) -> str:
    """A sentence without what turns to the subject."""
    if match := _ORDER_OPENING.match(sentence):
        return capitalize(sentence[match.end() :])
    text = drop_adverbs(_EMPTY_CLAUSE.sub("", sentence))
    return text if text == sentence else capitalize(text)


def drop_adverbs(text: str) -> str:
    """A text without the adverbs with which its sentences turn to something."""
    return _ADVERB.sub(lambda m: (m[1] or m[2]).upper(), text)


def is_caption(sentence: str) -> bool:
    """Whether a sentence only gives the next one a title: "Release time."."""
    return (
        sentence.endswith(".")
        and len(sentence.split()) <= MAX_CAPTION_WORDS
        and not extract_exact_terms(sentence)
        and not discourse_markers.FAILURE.search(sentence)
    )


def drop_label(text: str) -> str:
    """A statement without the words that announce a summing-up, or that something is finished."""
    rest = _RECAP_LABEL.sub("", text)
    return text if rest == text or not rest else capitalize(rest)


def is_empty_report(sentence: str) -> bool:
    """Whether a sentence says that something was done, and not what."""
    return _FINISHED.match(sentence) is not None


def restate_proposal(text: str) -> str:
    """What was proposed, as a statement, without what was thought before it."""
    found = list(_PROPOSING.finditer(text))
    is_short = not found or len(content_words(text[found[-1].end() :])) < MIN_PROPOSAL_WORDS
    if is_short:
        return text
    condition = _CONDITION.search(text[: found[-1].start()])
    told = text[found[-1].end() :]
    told = f"{told[:-1]}." if told.endswith("?") else told
    return capitalize(f"{condition[0]}{told}" if condition else told)


def capitalize(text: str) -> str:
    """The text with a capital first letter, unless it begins with a name of code."""
    return text if _CODE_NAME.match(text) else text[:1].upper() + text[1:]
