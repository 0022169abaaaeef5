"""Tests to inherit, for what extends wordsway: an extension brings a factory or two, and gets the tests that the
built-in ones pass. Imports every other room, and pytest.

`map_tests`, `score_tests`, `output_tests`, `certificate_tests`, `cell_tests` and `result_tests` test the package's
things and yours.
"""
