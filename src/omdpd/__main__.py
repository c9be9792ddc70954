"""`python -m omdpd`: the command line."""

from omdpd.cli.main import main

if __name__ == "__main__":
    main()
