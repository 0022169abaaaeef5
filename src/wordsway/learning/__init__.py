"""Learning: a linear readout that must follow a flipped label, and word sensitivity while a model is being trained.

`readout` trains, `generalization` shows it one more text and flips a word (`flip_objectives`, `flip_result`),
`pairwise` tells two texts apart. Of a model in training, `probe` and `callback` measure, `penalty` is a term of the
loss, and `borrowed` hands the model back as it was. Imports `measures`, `models` and the rooms below.
"""
