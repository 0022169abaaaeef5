"""Running a transformer: any hidden state of any text, from token ids or from rows that were moved.

`encoder` says what an encoder is, `checks` what must hold of a model. Imports no other part of `models`.
"""
