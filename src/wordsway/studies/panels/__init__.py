"""Panels of figures: one module draws the results of one or several kinds of cells, each as a `Picture`.

A kind of cell without a `Picture` of its own has `curve_panel.curve_picture` of its first column. Imports
`estimates`, `models.loading` (names of models) and `support`.
"""
