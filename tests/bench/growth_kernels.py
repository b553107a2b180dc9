"""PTX of one big kernel, or of many, by shape: the cost of a pass per unit must not grow with their number.

Every shape consists of pieces that give the passes work: addresses that are linear in the thread index, 64-bit index
arithmetic, products and sums, bit logic, accesses of global memory. `make(shape, count)` has about `count` of the
shape's unit: instructions, consecutive loops, nested loops, targets, parameters, kernels.
"""

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
PROLOGUE = """\t.reg .pred %p<4>;
\t.reg .b32 %r<16>;
\t.reg .f32 %f<8>;
\t.reg .b64 %rd<16>;
\tld.param.u64 %rd1, [in];
\tld.param.u64 %rd2, [out];
\tld.param.u32 %r1, [count];
\tcvta.to.global.u64 %rd3, %rd1;
\tcvta.to.global.u64 %rd4, %rd2;
\tmov.u32 %r2, %ctaid.x;
\tmov.u32 %r3, %ntid.x;
\tmov.u32 %r4, %tid.x;
\tmad.lo.s32 %r5, %r2, %r3, %r4;
\tmov.f32 %f1, 0f00000000;
\tmov.u32 %r10, 0;
"""
EPILOGUE = """\tmul.wide.s32 %rd10, %r5, 4;
\tadd.s64 %rd11, %rd4, %rd10;
\tst.global.f32 [%rd11], %f1;
\tst.global.u32 [%rd11+4096], %r10;
\tret;
"""
PIECE_LENGTH = 10


def piece(i):
    """Ten instructions: two loads at linear addresses, work on the loaded values, sometimes a store."""
    offset = i % 509
    lines = [f"add.s32 %r6, %r5, {offset};", "mul.wide.s32 %rd5, %r6, 4;", "add.s64 %rd6, %rd3, %rd5;",
             "ld.global.f32 %f2, [%rd6];", "fma.rn.f32 %f1, %f2, %f2, %f1;",
             f"ld.global.u32 %r7, [%rd6+{4 * (i % 61) + 8}];", f"and.b32 %r8, %r7, {i % 251 + 1};",
             "xor.b32 %r9, %r8, %r6;", "add.s32 %r10, %r10, %r9;"]
    if i % 8 == 7:
        lines.append(f"st.global.u32 [%rd6+{2048 + 4 * (i % 31)}], %r9;")
    else:
        lines.append("max.s32 %r10, %r10, %r4;")
    return "".join(f"\t{line}\n" for line in lines)


def kernel(body, more_parameters=""):
    parameters = "\t.param .u64 in,\n\t.param .u64 out,\n\t.param .u32 count" + more_parameters
    return f"{HEADER}.visible .entry growth(\n{parameters}\n)\n{{\n{PROLOGUE}{body}{EPILOGUE}}}\n"


def kernels(count):
    """Kernels of some 70 instructions, for each of which r2d2 makes a variant and keeps the original."""
    one = blocks(48)[len(HEADER):]
    return HEADER + "".join(one.replace("growth(", f"growth{i}(") for i in range(count))


def straight(count):
    return kernel("".join(piece(i) for i in range(count // PIECE_LENGTH)))


def blocks(count):
    """A branch over each piece, with a condition that differs between threads."""
    return kernel("".join(f"\tsetp.gt.s32 %p1, %r5, {i % 1021};\n\t@%p1 bra S{i};\n{piece(i)}S{i}:\n"
                          for i in range(count // (PIECE_LENGTH + 2))))


def loops(count):
    """Consecutive loops with one piece each; the launch determines the trip count."""
    return kernel("".join(
        f"\tmov.u32 %r11, 0;\nL{i}:\n\tmad.lo.s32 %r12, %r11, %r3, %r5;\n\tmul.wide.s32 %rd7, %r12, 4;\n"
        f"\tadd.s64 %rd8, %rd3, %rd7;\n\tld.global.f32 %f3, [%rd8+{4 * (i % 61)}];\n\tadd.f32 %f1, %f1, %f3;\n"
        f"\tadd.s32 %r11, %r11, 1;\n\tsetp.lt.s32 %p1, %r11, %r1;\n\t@%p1 bra L{i};\n" for i in range(count)))


def nested(count):
    """Nested loops, with a piece before each."""
    counters = f"\t.reg .b32 %n<{count}>;\n"
    enter = "".join(f"\tmov.u32 %n{i}, 0;\nN{i}:\n{piece(i)}" for i in range(count))
    leave = "".join(f"\tadd.s32 %n{i}, %n{i}, 1;\n\tsetp.lt.s32 %p1, %n{i}, %r1;\n\t@%p1 bra N{i};\n"
                    for i in reversed(range(count)))
    return kernel(counters + enter + leave)


def targets(count):
    """One indirect branch with `count` targets, a piece at each."""
    table = ", ".join(f"T{i}" for i in range(count))
    places = "".join(f"T{i}:\n{piece(i)}\tbra.uni done;\n" for i in range(count))
    return kernel(f"\trem.u32 %r11, %r4, {count};\nall: .branchtargets {table};\n\tbrx.idx %r11, all;\n{places}done:\n")


def parameters(count):
    """Kernel parameters, each loaded right before it is added."""
    more = "".join(f",\n\t.param .u32 p{i}" for i in range(count))
    return kernel("".join(f"\tld.param.u32 %r11, [p{i}];\n\tadd.s32 %r10, %r10, %r11;\n" for i in range(count)), more)


def accesses(count):
    """Stores at one address and different constants."""
    stores = "".join(f"\tst.global.u32 [%rd6+{4 * i}], %r4;\n" for i in range(count))
    return kernel("\tmul.wide.s32 %rd5, %r5, 4;\n\tadd.s64 %rd6, %rd4, %rd5;\n" + stores)


def atomics(count):
    """Maxima of different words at one address."""
    return kernel("\tmul.wide.s32 %rd5, %r5, 4;\n\tadd.s64 %rd6, %rd3, %rd5;\n" + "".join(
        f"\tld.global.u32 %r11, [%rd6+{4 * i}];\n\tred.global.max.u32 [%rd4], %r11;\n" for i in range(count)))


# The sizes that the bars refer to.
SHAPES = {
    "straight": (straight, 100_000, "instructions"),
    "blocks": (blocks, 100_000, "instructions in blocks"),
    "loops": (loops, 20_000, "loops"),
    "nested": (nested, 1_000, "loops inside each other"),
    "targets": (targets, 10_000, "targets of a branch"),
    "parameters": (parameters, 100_000, "parameters"),
    "kernels": (kernels, 3_000, "kernels"),
    "accesses": (accesses, 100_000, "accesses at one address"),
    "atomics": (atomics, 100_000, "atomic operations at one address"),
}


def make(shape, count):
    return SHAPES[shape][0](count)
