"""Triton, through its own launcher: a vector addition, softmax of rows, and a product of matrices in tiles."""
import numpy
import triton
import triton.language as tl
from cuda.bindings import driver


class Tensor:
    """The interface that Triton requires of a tensor: address and type."""

    def __init__(self, values, name):
        self.values = values
        self.dtype = name
        self.address = int(call(driver.cuMemAlloc(values.nbytes)))
        call(driver.cuMemcpyHtoD(self.address, values.ctypes.data, values.nbytes))

    def data_ptr(self):
        return self.address

    def fetch(self):
        call(driver.cuMemcpyDtoH(self.values.ctypes.data, self.address, self.values.nbytes))
        return self.values


def call(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) > 1 else None


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.load(x + tl.program_id(0) * columns + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * columns + offsets, powers / tl.sum(powers, axis=0), mask=mask)


@triton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (step + inner)[None, :])
        right = tl.load(b + (step + inner)[:, None] * n + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


def main():
    call(driver.cuInit(0))
    call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(0))))
    random = numpy.random.default_rng(1)
    x = random.random(1000, dtype=numpy.float32)
    y = random.random(1000, dtype=numpy.float32)
    out = Tensor(numpy.zeros_like(x), "float32")
    add[(4, )](Tensor(x, "float32"), Tensor(y, "float32"), out, x.size, BLOCK=256)
    assert (out.fetch() == x + y).all()

    x = random.random((6, 100), dtype=numpy.float32)
    out = Tensor(numpy.zeros_like(x), "float32")
    softmax[(6, )](Tensor(x, "float32"), out, 100, BLOCK=128)
    right = numpy.exp(x - x.max(axis=1, keepdims=True))
    right /= right.sum(axis=1, keepdims=True)
    assert numpy.allclose(out.fetch(), right, rtol=1e-5)

    a = random.integers(-4, 5, (64, 64)).astype(numpy.float16)
    b = random.integers(-4, 5, (64, 64)).astype(numpy.float16)
    c = Tensor(numpy.zeros((64, 64), numpy.float32), "float32")
    product[(2, 2)](Tensor(a, "float16"), Tensor(b, "float16"), c, 64, 64, 64, M=32, N=32, K=32)
    assert (c.fetch() == a.astype(numpy.float32) @ b.astype(numpy.float32)).all()
    print("right")


main()
