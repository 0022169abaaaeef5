"""The questions that users ask about a text: how far can a word move the features, which real word does it, and where?

One module a question, with its result; `job` carries out one measurement. Imports `models`, `certificates`, `search`,
`maps` and the rooms below.
"""
