"""Running studies: which cells are missing (`runner`), where they run (`engines`, `worker`), where results are kept
(`store`) and how they are read (`tables`).
"""
