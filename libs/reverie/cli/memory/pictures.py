"""`reverie picture`: pictures that memories carry."""

from __future__ import annotations

import base64
from pathlib import Path

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    drop_unset,
    limit_option,
    memory_id_argument,
)
from reverie.cli.app.output import Columns, short_id

app = click.Group(
    "picture",
    help="Attach pictures to memories, list, get and remove them.\n\n"
    "Example: reverie picture add 3fa9c1d2 architecture.svg",
    epilog=EXIT_CODES_HELP,
)
_hash_argument = click.argument("hash", help="The hash of the picture.")


def _path(id: str, digest: str = "") -> str:
    end = f"/{quote_segment(digest)}" if digest else ""
    return f"/v1/memories/{quote_segment(id)}/pictures{end}"


@app.command("add")
@memory_id_argument
@click.argument(
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A PNG, JPEG, GIF, WebP or SVG file.",
)
@click.option("--text", help="What is written or shown in it; the memory is found by it.")
@common_options
def attach_picture(options: CommonOptions, id: str, file: Path, text: str | None) -> None:
    """Attach a picture to a memory, which is then found by the text in it.

    Example: reverie picture add 3fa9c1d2 login.png --text "The login form shows error 4711"
    """
    data = base64.b64encode(file.read_bytes()).decode()
    body = drop_unset({"data": data, "name": file.name, "text": text})
    response = options.gateway().request("POST", _path(id), body=body)
    outcome = "carries" if response["created"] else "carried already"
    message = f"{short_id(response['memory'])} {outcome} {response['hash']}"
    options.print_result(response, message)


@app.command("list")
@memory_id_argument
@limit_option(50)
@common_options
def list_pictures(options: CommonOptions, id: str, limit: int) -> None:
    """List the pictures of a memory.

    Example: reverie picture list 3fa9c1d2
    """
    options.print_table(options.gateway().list_items(_path(id), {}, limit), _COLUMNS)


@app.command("get")
@memory_id_argument
@_hash_argument
@click.option("--out", "-o", type=click.Path(path_type=Path), help="The file to write.")
@common_options
def get_picture(options: CommonOptions, id: str, hash: str, out: Path | None) -> None:
    """Get a picture of a memory.

    Example: reverie picture get 3fa9c1d2 9b2f --out login.png
    """
    response = options.gateway().request("GET", _path(id, hash))
    if out is not None:
        out.write_bytes(base64.b64decode(response["data"]))
    summary = f"{response['media_type']}, {response['size']} bytes"
    options.print_result(response, f"{summary}, written to {out}" if out else summary)


@app.command("remove")
@memory_id_argument
@_hash_argument
@common_options
def remove_picture(options: CommonOptions, id: str, hash: str) -> None:
    """Remove a picture from a memory.

    Example: reverie picture remove 3fa9c1d2 9b2f
    """
    response = options.gateway().request("DELETE", _path(id, hash))
    options.print_result(response, f"{response['hash']} is removed")


_COLUMNS: Columns = {"hash": "hash", "type": "media_type", "bytes": "size"}
