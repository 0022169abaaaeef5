"""Random attention, and linear attention (`kernel`): the maps, their scores, and views when one or several tokens move.

A new score is a module in `scores`. Imports `maps.base` and the rooms below.
"""
