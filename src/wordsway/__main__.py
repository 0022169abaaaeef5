"""`python -m wordsway` is the command `wordsway`."""

from wordsway.cli.main import main

main()
