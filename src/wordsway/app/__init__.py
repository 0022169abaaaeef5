"""The page of `wordsway app`: a text is typed, its words are coloured as they are measured.

`page_request` is what may be asked, `offers` which models there are, `jobs` the one thread that measures, `measuring`
what it does, `guard` who may ask, `server` the addresses, `serving` the life of the process. Imports every room but
`cli`.
"""
