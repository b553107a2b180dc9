"""tinygrad's CUDA backend: fused arithmetic, reductions, a product of matrices, a convolution and a gradient, all of which
it compiles itself, against NumPy."""
import numpy
from tinygrad import Tensor, Device


def main():
    assert Device.DEFAULT == "CUDA"
    random = numpy.random.default_rng(1)
    x = random.standard_normal((37, 50), dtype=numpy.float32)
    y = random.standard_normal((50, 23), dtype=numpy.float32)
    left, right = Tensor(x), Tensor(y)
    assert numpy.allclose((left * 2 + 1).relu().numpy(), numpy.maximum(x * 2 + 1, 0))
    assert numpy.allclose(left.sum(axis=0).numpy(), x.sum(axis=0), atol=1e-5)
    assert (left.argmax(axis=1).numpy() == x.argmax(axis=1)).all()
    assert numpy.allclose((left @ right).numpy(), x @ y, atol=1e-4)
    powers = numpy.exp(x - x.max(axis=1, keepdims=True))
    assert numpy.allclose(left.softmax().numpy(), powers / powers.sum(axis=1, keepdims=True), atol=1e-6)
    assert (Tensor(numpy.arange(1000)).cumsum().numpy() == numpy.arange(1000).cumsum()).all()

    image = random.standard_normal((2, 3, 9, 9), dtype=numpy.float32)
    kernel = random.standard_normal((4, 3, 3, 3), dtype=numpy.float32)
    windows = numpy.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    expected = numpy.einsum("bcyxij,ocij->boyx", windows, kernel)
    assert numpy.allclose(Tensor(image).conv2d(Tensor(kernel)).numpy(), expected, atol=1e-4)

    weights = Tensor(x)
    gradient, = (weights @ right).square().sum().gradient(weights)
    assert numpy.allclose(gradient.numpy(), 2 * x @ y @ y.T, rtol=1e-3, atol=1e-3)
    print("right")


main()
