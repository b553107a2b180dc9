// Fourier transforms from their definition, in double precision; the inverse gives 512 times the signal.
#include "tests/samples/reference.h"

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

REFERENCE(fft) {
  constexpr int length = 512;
  using Complex = std::complex<double>;
  const auto signal = data.as<std::complex<float>>("signal");
  const auto spectrum = data.as<std::complex<float>>("spectrum");
  const auto restored = data.as<std::complex<float>>("restored");

  std::vector<Complex> turn(length);
  for (int i = 0; i < length; ++i) {
    turn[i] = std::polar(1.0, -2 * std::numbers::pi * i / length);
  }
  for (std::size_t first = 0; first < signal.size(); first += length) {
    for (int frequency = 0; frequency < length; ++frequency) {
      Complex sum = 0;
      for (int i = 0; i < length; ++i) {
        sum += Complex(signal[first + i]) * turn[i * frequency % length];
      }
      spectrum[first + frequency] = std::complex<float>(sum);
      restored[first + frequency] = signal[first + frequency] * float{length};
    }
  }

  // Nine stages of roundings, of sums up to 80 forward and 512 inverse.
  data.tolerate("spectrum", {.absolute = 2e-5});
  data.tolerate("restored", {.absolute = 5e-4});
}
