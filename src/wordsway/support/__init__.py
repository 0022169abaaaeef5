"""Tools that every room uses: errors, names, files, seeds, memory, devices, progress bars, provenance, data frames,
plotting; `names` lists what users may write, `own_code` imports modules of theirs.

Nothing here knows what a text, a map or a measurement is. It imports no other room.
"""
