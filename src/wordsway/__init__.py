"""wordsway: how far can one word move a model?

`import wordsway as ws` loads nothing heavy: the public names stand in `__init__.pyi`, and each is fetched from its
module when it is first used.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
