"""Tests to inherit, for what extends wordsway: an extension brings a factory or two, and gets the tests that the
built-in ones pass. `cell_tests` is for kinds of cells. Imports every other room, and pytest.
"""
