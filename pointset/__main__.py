"""`python -m pointset`: the command line where no command is on the path, as for `torchrun` and `accelerate launch`."""

from pointset.cli import main

if __name__ == "__main__":
    main()
