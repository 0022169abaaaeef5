"""`wordsway app`: the page."""

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.options import Debug
from wordsway.support.errors import InputError

_NEEDS = ("starlette", "uvicorn")


@app.command("app")
def page(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port on 127.0.0.1: 8137 or the next that is free; 0 for any."),
    ] = None,
    models: Annotated[
        list[Path] | None,
        typer.Option(help="Also offer the models in this folder (safetensors or GGUF)."),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    debug: Debug = False,
) -> None:
    """Open a page in your browser: type a text and see its words coloured as they are measured.

    It is served to this machine only. Ctrl-C stops it.
    """
    with one_line_errors(debug):
        missing = [name for name in _NEEDS if importlib.util.find_spec(name) is None]
        if missing:
            raise InputError(f"the page needs {' and '.join(missing)}; install the extra: pip install 'wordsway[app]'")
        from wordsway.app.offers import find_offers
        from wordsway.app.serving import serve

        offers = find_offers(models or [])
        if not offers:
            raise InputError("there is no model to embed a text with; install the extra: pip install 'wordsway[app]'")
        serve(offers, port, not no_open)
