"""Labelled texts: read from files and the hub, drawn for training, or made as minimal pairs. `bundled` has those that
come with the package.

A new data format is a reader in `readers`. Imports `models` (to count tokens) and the rooms below.
"""
