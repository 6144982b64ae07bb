"""The lexicon: words and phrases that are cues, as data, compiled to one expression for each cue.

An entry lists alternatives, divided by ` | `, each a regular expression; case does not count. A
long one goes on in the next line. The key tells where they stand:

`words`: whole words, anywhere. `prefixes`: the beginning of a word, anywhere. `openings`: whole
words at the beginning of the text. `starts`: at the beginning of the text. `patterns`, `chinese`:
as they are.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files

_FRAMES = {
    "words": r"\b(?:{})\b",
    "prefixes": r"\b(?:{})",
    "openings": r"^(?:{})\b",
    "starts": r"^(?:{})",
    "patterns": "{}",
    "chinese": "{}",
}
_SEPARATOR = re.compile(r"\s\|\s")


def read_cues(name: str) -> dict[str, re.Pattern[str]]:
    """Reads a file of the lexicon: an expression for each cue."""
    text = (files(__package__) / f"lexicon/{name}.toml").read_text("utf-8")
    return {cue: _compile_cue(entry) for cue, entry in tomllib.loads(text).items()}


def _compile_cue(entry: Mapping[str, str]) -> re.Pattern[str]:
    framed = (
        _FRAMES[key].format(_SEPARATOR.sub("|", text).replace("\n", ""))
        for key, text in entry.items()
    )
    return re.compile("|".join(framed), re.I)
