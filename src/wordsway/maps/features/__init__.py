"""Random features, shallow and deep: the map with its view, and its first layer, drawn or revealed on demand.

Imports `maps.base`, `maps.gaussian`, `maps.activations` and the rooms below.
"""
