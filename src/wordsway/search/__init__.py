"""Search for the move that changes the features most: a lower bound that is attained.

It sees a map only through `maps.base.View`, never a concrete map. Imports `maps.base`, `tokens` and `support`.
"""
