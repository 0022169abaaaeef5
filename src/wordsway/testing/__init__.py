"""Tests to inherit, for what extends wordsway: an extension brings a factory or two, and gets the tests that the
built-in ones pass. Imports every other room, and pytest.
"""
