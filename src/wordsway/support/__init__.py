"""Tools that every room uses: errors, files, seeds, memory, devices, progress bars, provenance, data frames, plotting.

Nothing here knows what a text, a map or a measurement is. It imports no other room.
"""
