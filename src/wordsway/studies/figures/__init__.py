"""Figures of studies: `draw` puts every panel in its place, and each kind of cell has a panel module that draws it.
`grid_figures` draws the results of `curve` and `generalize`.

A new kind of panel is a module with a `PICTURE` and a line in `draw.PICTURES`.
"""
