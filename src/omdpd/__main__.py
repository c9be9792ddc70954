"""`python -m omdpd`: the command line."""

from omdpd.cli import main

if __name__ == "__main__":
    main()
