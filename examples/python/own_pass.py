"""A pass written in Python: replaces wide multiplications by powers of two with shifts. Verified on the emulator."""
import os

import ptxrewrite
from ptxrewrite import Builder, register_pass, remove


@register_pass("shift-for-multiply", "x * 2^k in 64 bits by a shift")
def shift_for_multiply(function, context):
    for one in function.instructions:
        if one.mnemonic != "mul.wide.s32" or one.guarded:
            continue
        out, left, factor = one.operands
        number = factor.constant
        if number is None or number <= 0 or number & (number - 1):
            continue
        builder = Builder(function).before(one)
        wide = builder.emit_value("cvt.s64.s32", "b64", [left])
        builder.emit("shl.b64", [out, wide, number.bit_length() - 1])
        context.remark(f"a shift for {one.text}", one)
        remove(function, one)


def main():
    samples = os.environ.get("PTXREWRITE_SAMPLES", "samples")
    found = 0
    for name in ("aes", "backprop", "convolution2d", "hotspot", "matmul", "nw", "srad_v1"):
        path = os.path.join(samples, name, f"{name}.toml")
        launch = ptxrewrite.Launch.from_file(path)
        result = ptxrewrite.optimize(launch.ptx, passes=shift_for_multiply, run_ptxas=False)
        [case] = launch.verify("shift-for-multiply")
        assert case["result"] in ("identical", "unchanged"), case
        assert (case["result"] == "identical") == bool(result.remarks), (name, case)
        found += len(result.remarks)
        print(f"{name}: {len(result.remarks)} shifts, {case['result']}")
    assert found
    print("right")


main()
