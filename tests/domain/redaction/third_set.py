"""The third redaction set, in the manner of public repositories, written without the rules.

It follows the manner of public corpora of real repositories: sources of many languages, settings,
logs and documents, with ordinary weak passwords as people write them, and with what stands beside
credentials there: placeholders, names, checksums, ids. Its two files are written as those of
`redaction_held_out`, with more shapes.

Words that promise nothing (`changeme`, `password`, `your-password`, `dummy`, `test-token`) are
placeholders and are to stay; a word with a number (`sunshine12`) is a password. A hash of a
password is to go: it can be tried out elsewhere. What is encrypted for one reader stays.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from pathlib import Path

from reverie.domain.redaction.redactor import redact
from reverie.domain.text.characters import word_set
from tests.domain.redaction import held_out_set as templates

FOUND = Path(__file__).with_name("third_credentials.txt")
KEPT = Path(__file__).with_name("third_harmless.txt")
WORDS = word_set(
    "sunshine dragon monkey summer winter orange flower coffee shadow master silver tiger "
    "rabbit garden market window yellow planet bridge cookie pepper hockey jordan falcon"
)
LEET = str.maketrans("aeiost", "4310$7")

_dice = random.Random(77_013)
_WORDS = sorted(WORDS)


def _word(_: str = "") -> str:
    return _dice.choice(_WORDS)


def _weak(_: str) -> str:
    return _word() + str(_dice.randrange(10, 9999))


def _cap(_: str) -> str:
    return _word().capitalize() + _dice.choice("@!#") + str(_dice.randrange(1, 2030))


def _leet(_: str) -> str:
    return _word().capitalize().translate(LEET) + _word().translate(LEET)[:3] + "9"


def _gibberish(length: str) -> str:
    """As typed at random: letters for the most part, some digits."""
    size = int(length)
    start = "".join(_dice.choice(templates.LOWER) for _ in range(size - 3))
    return (
        start + "".join(_dice.choice(templates.ALNUM) for _ in range(2)) + _dice.choice("23456789")
    )


def _wordpress(_: str) -> str:
    chars = templates.ALNUM + "!@#%^&*()-_[]{}<>~+=,.;:/?|"
    return templates.run(chars, 64)


def _bytes(count: str) -> str:
    return ", ".join(f"0x{_dice.randrange(16, 256):02x}" for _ in range(int(count)))


def _wireguard(_: str) -> str:
    return base64.b64encode(_dice.randbytes(32)).decode()


def _fernet(_: str) -> str:
    return base64.urlsafe_b64encode(_dice.randbytes(32)).decode()


def _der(_: str) -> str:
    return "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + templates.run(templates.ALNUM + "+/", 300)


def _mnemonic(_: str) -> str:
    return " ".join(_word() for _ in range(12))


def _concatenated(kind: str) -> str:
    dashes = templates.DASHES
    body = [templates.run(templates.ALNUM + "+/", 64) for _ in range(3)]
    lines = [f"{dashes}BEGIN {kind}{dashes}", *body, f"{dashes}END {kind}{dashes}"]
    return " +\n".join(f'    "{line}\\n"' for line in lines)


MORE: dict[str, Callable[[str], str]] = {
    "weak": _weak,
    "cap": _cap,
    "leet": _leet,
    "gib": _gibberish,
    "wpsalt": _wordpress,
    "bytes": _bytes,
    "wg": _wireguard,
    "fernet": _fernet,
    "der": _der,
    "mnemonic": _mnemonic,
    "pemconcat": _concatenated,
}
templates.SHAPES.update(MORE)
_FOUND_CASES = templates.found_in(FOUND)
_KEPT_CASES = templates.kept_in(KEPT)


def third_found() -> list[tuple[str, tuple[str, ...]]]:
    """(text, what must not be left in it)."""
    return _FOUND_CASES


def third_kept() -> list[str]:
    """Texts in which nothing is to be redacted."""
    return _KEPT_CASES


def third() -> tuple[list[str], list[str], float, float]:
    """Missed texts, disturbed texts, precision and recall."""
    hits = third_found()
    missed = [text for text, values in hits if any(v in redact(text).text for v in values)]
    wrong = [text for text in third_kept() if redact(text).text != text]
    found = len(hits) - len(missed)
    return missed, wrong, found / (found + len(wrong)), found / len(hits)
