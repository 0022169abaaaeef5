"""`wordsway studies`: the studies that come along."""

import json

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import PanelCommand
from wordsway.cli.options import Debug, Json
from wordsway.support import names


@app.command(cls=PanelCommand)
def studies(as_json: Json = False, debug: Debug = False) -> None:
    """List the built-in studies, with their panels and sizes."""
    with one_line_errors(debug):
        from wordsway.studies.toml_files import find_study

        found = []
        for name in names.studies():
            sizes = {scale: find_study(name, scale) for scale in names.SCALES}
            panels = [{"id": p.id, "title": p.title, "measure": p.measure} for p in sizes["paper"].panels]
            cells = {scale: sum(1 for p in study.panels for _ in p.cells()) for scale, study in sizes.items()}
            found.append({"name": name, "title": sizes["paper"].title, "panels": panels, "cells": cells})
        if as_json:
            print(json.dumps(found))
            return
        for each in found:
            sizes_text = ", ".join(f"{scale} {count}" for scale, count in each["cells"].items())
            print(f"{each['name']}  {each['title']}\n      cells: {sizes_text}")
            for panel in each["panels"]:
                print(f"      {each['name']}-{panel['id']}: {panel['title']}")
        print("\nwordsway reproduce runs the paper's figures; wordsway run NAME another one, or FILE.toml of your own.")
