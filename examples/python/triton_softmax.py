"""A Triton kernel on the emulator, rewritten, scored and compared with NumPy. Needs no GPU."""
import numpy
import triton
import triton.language as tl

from ptxrewrite.triton import kernel


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.load(x + tl.program_id(0) * columns + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * columns + offsets, powers / tl.sum(powers, axis=0), mask=mask)


@triton.jit
def product(a, b, c, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
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
    random = numpy.random.default_rng(1)
    x = random.random((6, 100), dtype=numpy.float32)
    right = numpy.exp(x - x.max(axis=1, keepdims=True))
    right /= right.sum(axis=1, keepdims=True)
    for passes in ("", "r2d2,dce"):
        out = numpy.zeros_like(x)
        run = kernel(softmax, passes=passes)[(6, )](x, out, 100, BLOCK=128)
        assert numpy.allclose(out, right, rtol=1e-5)
        print(f"softmax {passes or 'as it is'}: {run.counters['warp_instructions']} warp instructions")
    launch = kernel(softmax)[(6, )].bind(x, out, 100, BLOCK=128)
    print(f"on an A100: {launch.score('a100', run_ptxas=False).rows()[0]['seconds'] * 1e6:.2f} us")

    # Integers, so that sums are exact in any order.
    a, b = (random.integers(-4, 5, (64, 64)).astype(numpy.float16) for _ in range(2))
    c = numpy.zeros((64, 64), numpy.float32)
    kernel(product)[(2, 2)](a, b, c, 64, 64, M=32, N=32, K=32)
    assert (c == a.astype(numpy.float32) @ b.astype(numpy.float32)).all()
    print("right")


main()
