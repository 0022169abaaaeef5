"""`wordsway app`: the page."""

import importlib.util
from pathlib import Path
from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import MODEL, RUN, PanelCommand
from wordsway.cli.options import Debug, option
from wordsway.support.errors import InputError

_NEEDS = ("starlette", "uvicorn")


@app.command("app", cls=PanelCommand)
def page(
    port: Annotated[
        int | None,
        option(
            RUN,
            "PORT",
            "Port on 127.0.0.1; 0 for any.",
            min=0,
            max=65535,
            show_default="8137 or the next that is free",
        ),
    ] = None,
    models: Annotated[
        list[Path] | None,
        option(MODEL, "FOLDER", "Also offer the models in this folder (safetensors or GGUF)."),
    ] = None,
    no_open: Annotated[bool, option(RUN, None, "Do not open a browser.", "--no-open")] = False,
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
