"""wordsway: how far can one word move a model?

`import wordsway as ws` loads nothing heavy: the public names stand in `__init__.pyi`, and each is fetched from its
module when it is first used.
"""

import os

import lazy_loader

# Threads of torch that wait for work spin: beside another busy program a search then takes many times as long. A short
# spin costs nothing measurable on an idle machine. It is read when torch is loaded; set it yourself for another.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
