"""`wordsway studies`: the studies that come along."""

import json
from typing import Any

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import PanelCommand
from wordsway.cli.options import Debug, Json
from wordsway.support import names


@app.command(cls=PanelCommand)
def studies(as_json: Json = False, debug: Debug = False) -> None:
    """List the built-in studies, with their panels and sizes."""
    with one_line_errors(debug):
        from wordsway.studies.toml_files import draft_studies

        found = []
        for name in names.studies():
            sizes = {scale: draft_studies([name], scale)[0] for scale in names.SCALES}
            panels = [{"id": p.id, "title": p.title, "measure": p.measure} for p in sizes["paper"].panels]
            cells = {scale: sum(map(_count, study.panels)) for scale, study in sizes.items()}
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


def _count(panel: Any) -> int:
    """Count the cells of a panel. Options of a map are for its recipe to check, which loads torch; of a built-in study
    they are tested, so a panel with some is counted by its grid."""
    maps = panel.values.get("map", "")
    if any(":" in each for each in ([maps] if isinstance(maps, str) else maps)):
        return 0 if panel.skip is not None else panel.size()
    return sum(1 for _ in panel.cells())
