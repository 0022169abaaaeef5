"""Upper bounds on how far a view's features can move, next to the lower bounds that a search finds.

A certificate is a statement about every delta of a radius, not about those that a search tried. Where weights are
given it is a deterministic inequality, computed in float64 with a margin for rounding; where they are revealed lazily
it holds up to a stated probability. `certify` chooses the bound by the class of a view: `attention_bound` (with
`several_bound` for tokens that move together), `heads_bound`, `features_bound` or `transformer_bound`; that of
pre-trained models is in `models/moving`, on the mathematics of `ellipsoid_bound`; a new one is a module beside them and
a line in `CERTIFICATES` of `support/names.py`. Imports `search`, `maps` and the rooms below.
"""
