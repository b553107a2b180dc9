"""Triton's matrix products for a Blackwell GPU, which use tensor memory (tcgen05): all types of elements.

No machine of the model has compute capability 10.0 yet, so they are compiled for it and launched as modules.
"""
import ctypes

import ml_dtypes
import numpy
import triton
import triton.language as tl
from cuda.bindings import driver
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def call(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) > 1 else None


@triton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SUMS: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=SUMS)
    for step in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (step + inner)[None, :])
        right = tl.load(b + (step + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total, out_dtype=SUMS)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


def device_copy(values):
    address = call(driver.cuMemAlloc(values.nbytes))
    call(driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))
    return address


def compiled(name, sums):
    """The kernel's metadata and its function, loaded in a separate module."""
    whole = sums is tl.int32
    signature = {"a": f"*{name}", "b": f"*{name}", "c": "*i32" if whole else "*fp32", "m": "i32", "n": "i32", "k": "i32",
                 **dict.fromkeys(("M", "N", "K", "SUMS"), "constexpr")}
    source = ASTSource(fn=product, signature=signature, constexprs={"M": 128, "N": 64, "K": 64, "SUMS": sums})
    made = triton.compile(source, target=GPUTarget("cuda", 100, 32), options={"num_warps": 4})
    assert "tcgen05.mma" in made.asm["ptx"], name
    module = call(driver.cuModuleLoadData(made.asm["ptx"].encode() + b"\0"))
    function = call(driver.cuModuleGetFunction(module, made.metadata.name.encode()))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    call(driver.cuFuncSetAttribute(function, attribute, made.metadata.shared))
    return made.metadata, function


def main():
    call(driver.cuInit(0))
    call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(0))))
    random = numpy.random.default_rng(1)
    m, n, k = 256, 128, 192
    # Integers: sums are exact in any order.
    for name, element in (("fp16", numpy.float16), ("bf16", ml_dtypes.bfloat16), ("fp32", numpy.float32),
                          ("fp8e4nv", ml_dtypes.float8_e4m3fn), ("fp8e5", ml_dtypes.float8_e5m2), ("i8", numpy.int8)):
        whole = name == "i8"
        a = random.integers(-4, 5, (m, k)).astype(element)
        b = random.integers(-4, 5, (k, n)).astype(element)
        c = numpy.zeros((m, n), numpy.int32 if whole else numpy.float32)
        made, function = compiled(name, tl.int32 if whole else tl.float32)
        found = device_copy(c)
        values = (int(device_copy(a)), int(device_copy(b)), int(found), m, n, k, 0, 0)
        types = (ctypes.c_void_p,) * 3 + (ctypes.c_int32,) * 3 + (ctypes.c_void_p,) * 2
        call(driver.cuLaunchKernel(function, m // 128, n // 64, 1, 32 * made.num_warps, 1, 1, made.shared, 0,
                                   (values, types), 0))
        call(driver.cuMemcpyDtoH(c.ctypes.data, found, c.nbytes))
        assert (c == a.astype(numpy.float64) @ b.astype(numpy.float64)).all(), name
    print("right")


main()
