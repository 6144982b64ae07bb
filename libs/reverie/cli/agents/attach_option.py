"""The option `--attach`: text files and images that are sent with a message to agents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from reverie.domain.formats.attachments import Attachments

attach_option = click.option(
    "--attach",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text or an image to send with it; may be repeated.",
)


def read_attachments(places: Iterable[Path]) -> dict[str, Any]:
    """The fields of a message with these files. Raises `InvalidInput`, `OSError`."""
    given = Attachments()
    for place in places:
        given.add(place.name, place.read_bytes())
    return given.encode()
