"""Feature maps: functions of a text whose change under a moved token can be computed cheaply.

`base` has the two abstractions, `FeatureMap` and `View`; `named` makes maps by name; `from_callable` wraps any
function; `theory` predicts. The random maps live in `attention`, `features` and `transformer`. Imports `tokens` and
`support`.
"""
