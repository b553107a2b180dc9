"""Every example in the package's documentation runs."""
import doctest
import importlib

MODULES = ["ptxrewrite", "ptxrewrite.module", "ptxrewrite.rewrite", "ptxrewrite.emulator"]


def test_examples():
    for name in MODULES:
        result = doctest.testmod(importlib.import_module(name))
        assert result.attempted > 0 and result.failed == 0, (name, result)
