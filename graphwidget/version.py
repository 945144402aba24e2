"""The version of this package, for all that name it: `pyproject.toml` has the same."""

__version__ = "0.1.0"
