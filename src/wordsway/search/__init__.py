"""Search for the move that changes the features most: a lower bound that is attained.

`ascent` serves every map, within `regions`; pre-trained models are searched by `places` from `landmarks`, with
`effort`, `metric` and `finish`; `nearest_flip` and `boundary` find the smallest move that changes a prediction,
`widening` the largest change at one radius after another; `polish` ends flipped labels, `guided` chooses among real
words. It sees a map only through `maps.base.View`, never a concrete map. Imports `maps.base`, `tokens` and `support`.
"""
