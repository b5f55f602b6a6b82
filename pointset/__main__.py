"""`python -m pointset`: the command line."""

from pointset.cli import main

main()
