"""Outputs of a model, by the names that users give: one module each, on the classes of `base`.

A new one is a module beside these and a line in `OUTPUTS` of `support/names.py`.
"""
