"""The text of an SVG, and the line of a picture in a memory's content. Pure."""

from __future__ import annotations

import pytest

from reverie.domain.core.errors import InvalidInput, NotFound
from reverie.domain.formats.pictures import (
    MAX_TAGS,
    add_picture_line,
    detect_media_type,
    extract_svg_text,
    find_picture_label,
    parse_digest,
    remove_picture_line,
)

DEPTH = 5_000
HASH = "a" * 64


def test_nested_texts_of_an_svg_are_each_taken_once() -> None:
    inner = b"<svg><g><text>Cart <desc>of the shop</desc></text></g><title>Flow</title></svg>"
    assert extract_svg_text(inner) == "Cart of the shop Flow"
    nested = b"<desc>x" * DEPTH + b"</desc>" * DEPTH
    assert extract_svg_text(b"<svg>" + nested + b"</svg>") == "x" * DEPTH


def test_an_svg_of_very_many_tags_is_refused() -> None:
    large = b"<svg>" + b"<g/>" * (MAX_TAGS - 2) + b"</svg>"
    assert detect_media_type(large) == "image/svg+xml"
    with pytest.raises(InvalidInput, match="more than"):
        detect_media_type(large.replace(b"</svg>", b"<g/></svg>"))


def test_a_picture_is_removed_without_the_words_that_mention_it() -> None:
    said = f"See [picture {HASH[:12]}] for the ports: 80 and 443."
    once = add_picture_line(said, HASH, "ports.svg", "80 443")
    assert once == f"{said}\n\n[picture {HASH[:12]}] ports.svg 80 443"
    assert add_picture_line(once, HASH, "ports.svg", "80 443") == once
    assert find_picture_label(once, HASH) == "ports.svg 80 443"
    assert find_picture_label(said, HASH) == ""
    both = add_picture_line(once, "f" * 64, None, "A cat")
    assert remove_picture_line(both, HASH) == f"{said}\n\n[picture {'f' * 12}] A cat"
    assert remove_picture_line(once, HASH) == said
    assert remove_picture_line(said, HASH) == said


@pytest.mark.parametrize("text", ["", HASH[:12], f"{HASH}aa", f"{HASH[:-2]} a", "g" * 64])
def test_only_a_whole_hash_names_a_picture(text: str) -> None:
    assert parse_digest(HASH) == b"\xaa" * 32
    with pytest.raises(NotFound):
        parse_digest(text)
