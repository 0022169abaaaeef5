"""Search for the move that changes the features most: a lower bound that is attained.

`ascent` serves every map, within `regions`; pre-trained models are searched by `places` from `landmarks`, with
`effort`, `metric` and `finish`; `polish` ends flips, `guided` chooses among real words. It sees a map only through
`maps.base.View`, never a concrete map. Imports `maps.base`, `tokens` and `support`.
"""
