"""Encoding: the public function `encode`, its cache on disk, encoders without a model, random words of a vocabulary.

Imports `models.loading` and `models.running`.
"""
