"""Upper bounds on how far a view's features can move, next to the lower bounds that a search finds.

A certificate is a statement about every delta of a radius, not about those that a search tried. Where weights are
given it is a deterministic inequality, computed in float64 with a margin for rounding; where they are revealed lazily
it holds up to a stated probability. `certify` chooses the bound of a view: `attention_bound`, `several_bound` (tokens
that move together) or `features_bound`; a new one is a module beside them and a line there. Imports `search`, `maps`
and the rooms below.
"""
