"""A kit of tests, for pytest: derive a class from one of those here, bring a factory or two, and inherit its tests.

`map_tests`, `score_tests`, `output_tests` and `certificate_tests` are for the package's own things and for yours.
"""
