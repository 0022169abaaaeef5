"""Random attention: the map, its score functions, and its views when one or several tokens move.

A new score is a class in `scores`. Imports `maps.base` and the rooms below.
"""
