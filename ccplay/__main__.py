"""Entry point of the program ``ccplay`` and of ``python -m ccplay``."""

import sys


def main() -> int:
    """Run the command line of this process and return its exit code, 130 if interrupted."""
    try:
        from ccplay import cli  # noqa: PLC0415 - it takes a tenth of a second
    except KeyboardInterrupt:
        print("ccplay: interrupted", file=sys.stderr)
        return 130
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
