"""A pre-trained model as a feature map: what its outputs do when hidden state 0 of some tokens moves.

A new output is a line in `outputs`. Attention weights, changes of all layers and real words in a word's place are here
too. Imports the other parts of `models`.
"""
