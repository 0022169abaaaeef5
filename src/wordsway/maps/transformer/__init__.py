"""Random transformers: the map and its view.

Imports `maps.attention` (for scores), `maps.base` and the rooms below.
"""
