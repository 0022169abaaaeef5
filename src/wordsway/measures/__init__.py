"""The questions that users ask about a text: how far can a word move the features, which real word does it, and where?

One module a question: `sensitivity`, `compare_word`, `best_words`, `layer_profile`, `attention_maps`, `prompts`,
`explain`, `flip_radius`, `radius_profile`. `job` carries out one measurement, `words` goes from words to tokens and
back, `ranks` says which words tie, `answers` what command and page answer.
Imports `models`, `certificates`, `search`, `maps` and the rooms below.
"""
