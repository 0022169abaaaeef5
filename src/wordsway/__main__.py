"""`python -m wordsway` is the command `wordsway`."""

from wordsway.cli import main

main()
