"""Kinds of cells: each is the full recipe of one measurement, as JSON values, and can carry it out.

A new kind is a module with a subclass of `base.Cell` (of `text_cell.TextCell`, if it is about a map and a text) and a
line in `kinds`. Its columns, its picture and its part of the report come from the class.
"""
