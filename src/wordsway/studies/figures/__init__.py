"""Whole figures: `draw` puts every panel of a study in its place, each drawn as its kind of cell says (`panels`).
`grid_figures` draws the results of `curve` and `generalize`.
"""
