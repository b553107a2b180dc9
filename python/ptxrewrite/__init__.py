"""PTX rewritten, run without a GPU, and measured.

>>> import ptxrewrite
>>> module = ptxrewrite.Module.parse(ptxrewrite.EXAMPLE)
>>> [function.name for function in module.functions]
['saxpy']
>>> result = ptxrewrite.optimize(ptxrewrite.EXAMPLE, passes="dce", run_ptxas=False)
>>> result.ptx.startswith(".version")
True
"""
from ._core import Builder, Function, Instruction, Operand, PassContext, Value, remove, set_operands
from ._core import version as __version__
from .diagnostics import Diagnostic, KernelFault, PtxError
from .emulator import Kernel, Launch, Run, Score
from .example import EXAMPLE
from .module import Module
from .rewrite import Difference, Proof, Result, analyze, diff, machines, optimize, passes, prove, ptxas, register_pass
from .tools import score, study, verify

__all__ = [
    "Builder", "Diagnostic", "Difference", "EXAMPLE", "Function", "Instruction", "Kernel", "KernelFault", "Launch",
    "Module", "Operand", "PassContext", "Proof", "PtxError", "Result", "Run", "Score", "Value", "__version__",
    "analyze", "diff", "machines", "optimize", "passes", "prove", "ptxas", "register_pass", "remove", "score",
    "set_operands", "study", "verify",
]
