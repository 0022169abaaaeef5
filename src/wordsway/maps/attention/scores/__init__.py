"""Scores of attention: how a row of logits becomes a row of weights, one module each.

`base` has the abstract classes, and `find` loads a score by its name. A new one is a module beside these and a line in
`SCORES` of `support/names.py`.
"""
