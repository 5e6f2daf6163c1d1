"""`python -m patchkit`."""

from patchkit.cli.main import main

if __name__ == "__main__":
    main()
