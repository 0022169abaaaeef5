"""Pre-trained models: from a name to a model (`loading`), texts to rows (`encoding`), a model as a map (`moving`).

`running` is what these three share: a transformer that is run to any depth, from ids or from moved rows. Imports
`certificates`, `search`, `maps` and the rooms below.
"""
