"""Names and sizes of sources of texts, which studies are checked with before any text is read."""

PADDINGS = ("none", "published")
PUBLISHED_BELOW, PUBLISHED_LENGTH = 240, 256  # the paper's reviews have fewer tokens, and are padded to so many
POSITIONS = ("random", "start")
GENERATED = "generated"  # the data of pairs that are made here
