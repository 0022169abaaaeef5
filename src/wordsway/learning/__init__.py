"""Learning: a linear readout that must follow a flipped label, and word sensitivity while a model is being trained.

Imports `measures`, `models` and the rooms below.
"""
