"""Results as a page: one file that needs no network, for measurements and for whole runs.

`page` chooses and renders, `parts` are what a report is made of; `measurement`, `model_results` and `runs` turn results
into parts. Imports `studies`, `measures` and `support`.
"""
