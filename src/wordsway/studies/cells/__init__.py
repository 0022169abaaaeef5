"""Kinds of cells: each is the full recipe of one measurement, as JSON values, and can carry it out.

A new kind is a module with a subclass of `base.Cell` and a line in `recipes.KINDS`.
"""
