"""Turns a program of csmith into one source that is a program for the host and a kernel for a GPU."""

import re

WIDTHS = (8, 16, 32, 64)

PREAMBLE = """
#ifdef FOR_DEVICE
#ifdef __clang__
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#endif
#define EVERYWHERE __device__
#define printf(...) ((void)0)
#else
#include <cstdio>
#define EVERYWHERE
#endif
#define memcpy __builtin_memcpy
// As on the host, whose own header nvcc reads.
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
static EVERYWHERE uint32_t crc32_context = 0xFFFFFFFFu;
static EVERYWHERE void crc_byte(uint32_t byte) {
  crc32_context ^= byte & 0xFF;
  for (int bit = 0; bit < 8; ++bit) crc32_context = crc32_context >> 1 ^ (0xEDB88320u & (0u - (crc32_context & 1)));
}
static EVERYWHERE void transparent_crc(uint64_t value, const char *, int) {
  for (int i = 0; i < 8; ++i) crc_byte((uint32_t)(value >> 8 * i));
}
static EVERYWHERE void transparent_crc_bytes(const volatile void *pointer, int bytes, const char *, int) {
  for (int i = 0; i < bytes; ++i) crc_byte(((const volatile uint8_t *)pointer)[i]);
}
"""

# Appended to the program. One thread is enough: the program's variables are the module's.
KERNEL = """
#ifdef FOR_DEVICE
extern "C" __global__ void generated(uint32_t *out) { *out = program(); }
#else
int main() { printf("%u\\n", program()); }
#endif
"""


def arithmetic(name, kind, width):
    """The operations that csmith calls on one type. They wrap, or return the left operand if C leaves it undefined."""
    unsigned = f"uint{width}_t"
    lowest = f"({name})((uint64_t)1 << {width - 1})"
    trouble = f" || (a == {lowest} && b == -1)" if kind == "s" else ""
    negative = "a < 0 || " if kind == "s" else ""
    define = "static EVERYWHERE inline"
    lines = [f"{define} {name} safe_unary_minus_func_{name}_{kind}({name} a) {{ return ({name})(0 - (uint64_t)a); }}"]
    for word, sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
        lines.append(f"{define} {name} safe_{word}_func_{name}_{kind}_{kind}({name} a, {name} b) "
                     f"{{ return ({name})({unsigned})((uint64_t)a {sign} (uint64_t)b); }}")
    for word, sign in (("div", "/"), ("mod", "%")):
        lines.append(f"{define} {name} safe_{word}_func_{name}_{kind}_{kind}({name} a, {name} b) "
                     f"{{ return b == 0{trouble} ? a : ({name})(a {sign} b); }}")
    for count_kind, count in (("s", "int"), ("u", "unsigned int")):
        outside = f"{'b < 0 || ' if count_kind == 's' else ''}b >= {width}"
        lines.append(f"{define} {name} safe_lshift_func_{name}_{kind}_{count_kind}({name} a, {count} b) "
                     f"{{ return {negative}{outside} ? a : ({name})({unsigned})((uint64_t)a << b); }}")
        lines.append(f"{define} {name} safe_rshift_func_{name}_{kind}_{count_kind}({name} a, {count} b) "
                     f"{{ return {negative}{outside} ? a : ({name})(a >> b); }}")
    return lines


def source_of(program):
    """`program`: csmith's output with --lang-cpp. The result is for the host, or with FOR_DEVICE a kernel."""
    text = re.sub(r"^#include.*$", "", program, flags=re.M)
    text = re.sub(r"^static ", "static EVERYWHERE ", text, flags=re.M)
    text = re.sub(r"^(\s+)((?:volatile )?(?:struct|union) \w+& operator=)", r"\1EVERYWHERE \2", text, flags=re.M)
    text, mains = re.subn(r"^int main ?\([^)]*\)", "static EVERYWHERE uint32_t program()", text, flags=re.M)
    if mains != 1:
        raise ValueError("not a program of csmith")
    text = re.sub(r"^.*\bargc\b.*$", "", text, flags=re.M)
    text = re.sub(r"^\s*(platform_main_begin|crc32_gentab)\(\);", "", text, flags=re.M)
    text = re.sub(r"platform_main_end\(([^,]*),[^)]*\);", r"return (uint32_t)(\1);", text)
    types = [(f"{'u' if kind == 'u' else ''}int{width}_t", kind, width) for width in WIDTHS for kind in ("s", "u")]
    operations = [line for one in types for line in arithmetic(*one)]
    return "\n".join([PREAMBLE, *operations, text, KERNEL])
