"""`reverie documents`: what programs keep as it is, beside memory."""

from __future__ import annotations

import json as jsonlib
import sys

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    drop_unset,
    limit_option,
    yes_option,
)
from reverie.cli.app.output import Columns, age_cell, confirm, one_line, plural
from reverie.domain.core.errors import InvalidInput

PATH = "/v1/documents"
MAX_SHOWN = 120

app = click.Group(
    "documents",
    help="Store JSON values of programs, by collection and key; recall does not search them.\n\n"
    "Example: reverie documents list notes",
    epilog=EXIT_CODES_HELP,
)
collection_argument = click.argument("collection", help="The collection's name.")
document_scope_option = click.option("--scope", help="The scope; default: the scope of the key.")


@app.command("put")
@collection_argument
@click.argument("key", help="The document's key.")
@document_scope_option
@click.option("--if-absent", is_flag=True, help="Leave a document that is there as it is.")
@click.option("--expires-in", type=float, help="Seconds after which it is gone.")
@common_options
def put_document(
    options: CommonOptions,
    collection: str,
    key: str,
    scope: str | None,
    if_absent: bool,
    expires_in: float | None,
) -> None:
    """Store the JSON value of standard input.

    Secrets in it are replaced, as in everything that is stored.

    Example: echo '{"step": 3}' | reverie documents put runs 2026-03-02
    """
    try:
        value = jsonlib.loads(sys.stdin.read())
    except ValueError as error:
        raise InvalidInput("standard input", f"is not JSON: {error}") from None
    document = {"key": key, "value": value} | drop_unset({"expires_in": expires_in})
    body = {"collection": collection, "documents": [document], "if_absent": if_absent}
    response = options.gateway().request("POST", PATH, {}, body | drop_unset({"scope": scope}))
    written = "written" if response["written"] else "was there already"
    options.print_result(response, f"{key} in {collection}: {written}")


@app.command("list")
@collection_argument
@document_scope_option
@click.option("--key", help="Only the document of this key.")
@click.option("--prefix", help="Only those whose keys begin with this.")
@click.option("--newest", is_flag=True, help="From the last to the first.")
@limit_option(200)
@common_options
def list_documents(
    options: CommonOptions,
    collection: str,
    scope: str | None,
    key: str | None,
    prefix: str | None,
    newest: bool,
    limit: int,
) -> None:
    """List the documents of a collection, in the order of writing.

    Example: reverie documents list runs --newest -n 1
    """
    query = {"collection": collection, "scope": scope, "key": key, "prefix": prefix}
    query["order"] = "newest" if newest else None
    items = options.gateway().list_items(PATH, query, limit)
    columns: Columns = {
        "key": "key",
        "written": age_cell("updated_at"),
        "value": lambda item: one_line(
            "(bytes)" if item["data"] is not None else jsonlib.dumps(item["value"]), MAX_SHOWN
        ),
    }
    options.print_table(items, columns)


@app.command("collections")
@document_scope_option
@click.option("--prefix", help="Only those whose names begin with this.")
@limit_option(200)
@common_options
def list_collections(
    options: CommonOptions, scope: str | None, prefix: str | None, limit: int
) -> None:
    """List collections and the number of their documents.

    Example: reverie documents collections --scope project/shop
    """
    query = {"scope": scope, "prefix": prefix}
    items = options.gateway().list_items(f"{PATH}/collections", query, limit)
    columns: Columns = {name: name for name in ("collection", "documents")} | {
        "written": age_cell("updated_at")
    }
    options.print_table(items, columns)


@app.command("delete")
@click.argument("collection", required=False, help="The collection's name.")
@click.option("--key", "keys", multiple=True, help="Only this document; may be repeated.")
@click.option("--prefix", help="Instead: every collection whose name begins with this.")
@document_scope_option
@yes_option
@common_options
def delete_documents(
    options: CommonOptions,
    collection: str | None,
    keys: tuple[str, ...],
    prefix: str | None,
    scope: str | None,
    yes: bool,
) -> None:
    """Delete documents, or whole collections.

    Example: reverie documents delete runs --key 2026-03-02
    """
    name = collection or prefix
    if name is None or (collection and prefix):
        raise InvalidInput("COLLECTION", "give a collection, or `--prefix`")
    if not yes:
        what = f"all that begins with {prefix}" if prefix else f"all of {collection}"
        confirm(f"Delete {'these documents' if keys else what} for good?")
    body = {"collection": name, "is_prefix": prefix is not None}
    body |= drop_unset({"keys": list(keys) or None, "scope": scope})
    response = options.gateway().request("POST", f"{PATH}/delete", {}, body)
    options.print_result(response, f"deleted {plural(response['deleted'], 'document')}")
