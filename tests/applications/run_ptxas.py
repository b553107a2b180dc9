#!/usr/bin/env python3
"""ptxrewrite-ptxas in place of ptxas: arguments, output and exit code of the real one pass through; inputs are
rewritten; without a real ptxas, cubins contain PTX, which `ptxrewrite exec` runs.

usage: run_ptxas.py --drop-in PTXREWRITE-PTXAS --tool PTXREWRITE --nvcc NVCC --libraries FOLDER --folder FOLDER --samples FOLDER
"""
import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import threading

# A ptxas that prints its arguments, keeps a copy of its input and reports an error for it.
STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { echo "Cuda compilation tools, release 12.5, V12.5.1"; exit 0; }
echo "words: $*"
for word; do case "$word" in *.ptx) cp "$word" "$KEPT"; echo "ptxas $word, line 7; error" >&2;; esac; done
exit 7
"""
PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 data) { ret; }
"""
failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text)


class Place:
    """A folder with a stand-in, and the drop-in run in it."""

    def __init__(self, options):
        self.options = options
        self.folder = os.path.join(options.folder, "ptxas")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.stand_in = self.write("bin/ptxas", STAND_IN)
        os.chmod(self.stand_in, stat.S_IRWXU)
        self.kept = self.path("kept.ptx")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run(self, *words, program=None, **environment):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PTXREWRITE_")}
        return subprocess.run([program or self.options.drop_in, *words], capture_output=True, text=True, check=False,
                              cwd=self.folder, env={**clean, "KEPT": self.kept, **environment})


def check_passing_through(place):
    source = place.write("a.ptx", PTX)
    words = ["-arch=sm_80", "-v", "--opt-level", "2", source, "-o", "a.cubin"]
    child = place.run(*words, PTXREWRITE_PTXAS=place.stand_in)
    expect(child.stdout == "words: " + " ".join(words) + "\n", f"the words are {child.stdout!r}")
    expect(child.returncode == 7 and child.stderr == f"ptxas {source}, line 7; error\n", f"output {child.stderr!r}")
    child = place.run("ptxas", *words, PTXREWRITE_PTXAS=place.stand_in)  # as nvcc --ptxas-prefix calls it
    expect(child.stdout == "words: " + " ".join(words) + "\n", f"behind the name of ptxas: {child.stdout!r}")
    version = place.run("--version", PTXREWRITE_PTXAS=place.stand_in, PTXREWRITE_PASSES="r2d2").stdout
    expect("release 12.5," in version and "passes r2d2" in version, f"the version is {version!r}")
    # Under the name of ptxas, first in PATH: the next one in PATH is used.
    os.makedirs(place.path("first"))
    os.symlink(place.options.drop_in, place.path("first/ptxas"))
    path = place.path("first") + ":" + place.path("bin") + ":" + os.environ["PATH"]
    child = place.run(*words, program=place.path("first/ptxas"), PATH=path)
    expect(child.returncode == 7 and child.stdout.startswith("words: -arch"), f"found itself: {child}")
    child = place.run(*words, PTXREWRITE_PTXAS=place.path("first/ptxas"))
    expect(child.returncode == 255 and "itself" in child.stderr, f"named itself: {child}")
    wrapper = place.write("wrapper", f'#!/bin/sh\nexec "{place.options.drop_in}" "$@"\n')
    os.chmod(wrapper, stat.S_IRWXU)
    child = place.run(*words, PTXREWRITE_PTXAS=wrapper)
    expect(child.returncode == 255 and "itself" in child.stderr, f"a circle: {child}")


def check_rewriting(place):
    source = os.path.join(place.options.samples, "bplus_tree", "bplus_tree.ptx")
    with open(source, encoding="utf-8") as file:
        original = file.read()
    for environment, words in (({}, ["--ptxrewrite-passes=schedule(force)"]), ({"PTXREWRITE_PASSES": "schedule(force)"}, [])):
        child = place.run(*words, source, "-o", "b.cubin", PTXREWRITE_PTXAS=place.stand_in, **environment)
        with open(place.kept, encoding="utf-8") as file:
            rewritten = file.read()
        expect(child.returncode == 7 and rewritten != original, "passes do not reach the input")
        expect(f"ptxas {source}, line 7; error" in child.stderr, f"messages name another file: {child.stderr!r}")
    child = place.run("--ptxrewrite-passes=nothing-such", source, PTXREWRITE_PTXAS=place.stand_in)
    expect(child.returncode == 255 and "nothing-such" in child.stderr, f"an unknown pass: {child}")
    # Variants for some launches need a launcher that selects them: such kernels are not changed.
    source = os.path.join(place.options.samples, "backprop", "backprop.ptx")
    place.run("--ptxrewrite-passes=r2d2", source, PTXREWRITE_PTXAS=place.stand_in)
    by_opt = place.run("opt", "-p", "r2d2", "--no-ptxas", source, program=place.options.tool).stdout
    with open(place.kept, encoding="utf-8") as kept, open(source, encoding="utf-8") as file:
        entries = [re.findall(r"\.entry\s+(\w+)", text) for text in (kept.read(), file.read(), by_opt)]
    expect(entries[0] == entries[1] and len(entries[2]) > len(entries[1]), f"kernels: {entries}")


def check_pipe(place):
    """An input that can be read only once: rewritten or not, the real ptxas and the carrier get its text."""
    os.mkfifo(place.path("pipe.ptx"))
    with open(os.path.join(place.options.samples, "bplus_tree", "bplus_tree.ptx"), encoding="utf-8") as file:
        long = file.read()
    for text, words in ((PTX, []), (long, []), (PTX, ["--emulated"])):
        writer = threading.Thread(target=lambda: place.write("pipe.ptx", text))
        writer.start()
        child = place.run(*words, "--ptxrewrite-passes=schedule(force)", "pipe.ptx", "-o", "pipe.cubin",
                          PTXREWRITE_PTXAS=place.stand_in)
        writer.join()
        expect(child.returncode == (0 if words else 7), f"a pipe {words}: {child}")
        with open(place.path("pipe.cubin") if words else place.kept, "rb") as file:
            got = file.read()
        expect((PTX.encode() in got) if text is PTX else b".entry" in got and got != long.encode(),
               f"the text of a pipe {words} is lost")


def check_emulated(place):
    source = place.write("good.ptx", PTX)
    child = place.run("--emulated", "-arch=sm_90a", "-v", "-lineinfo", source, "-o", "good.cubin")
    expect(child.returncode == 0, f"emulated: {child}")
    with open(place.path("good.cubin"), "rb") as file:
        image = file.read()
    expect(image[:5] == b"\x7fELF\x02" and image[18:20] == b"\xbe\0" and image[49] == 90, "no ELF for sm_90")
    expect(PTX.encode() in image, "the cubin does not carry the text")
    wrong = place.write("wrong.ptx", PTX.replace("ret;", "mov.u32 %nobody, 1; ret;"))
    child = place.run(wrong, "-o", "wrong.cubin", PTXREWRITE_EMULATED="1")
    expect(child.returncode == 255 and "wrong.ptx:4" in child.stderr, f"wrong PTX: {child}")
    expect(not os.path.exists(place.path("wrong.cubin")), "wrong PTX gives a cubin")
    for words, reason in ((["-arch=sm_60"], ".target is higher"), (["-c"], "relocatable"), (["-arch=what"], "gpu-name")):
        child = place.run("--emulated", *words, source)
        expect(child.returncode == 255 and reason in child.stderr, f"{words}: {child}")
    version = place.run("--version", PTXREWRITE_EMULATED="1").stdout
    expect(re.search(r"release \d+\.\d+", version) and "emulator" in version, f"the version is {version!r}")


def check_real(place):
    ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not os.path.exists(ptxas):
        print("left out: there is no ptxas")
        return
    source = os.path.join(place.options.samples, "bplus_tree", "bplus_tree.ptx")
    images = []
    for words in ([ptxas], [place.options.drop_in], [place.options.drop_in, "--ptxrewrite-passes=r2d2"]):
        child = place.run(*words[1:], "-arch=sm_80", source, "-o", "real.cubin", program=words[0])
        expect(child.returncode == 0, f"the real ptxas by {words}: {child}")
        with open(place.path("real.cubin"), "rb") as file:
            images.append(file.read())
    expect(images[0] == images[1] and images[0] != images[2], "cubins by the drop-in and by ptxas")


def check_nvcc(place):
    options = place.options
    if not os.path.exists(options.nvcc):
        print("left out: there is no nvcc")
        return
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "managed.cu")
    for emulated in ("1", "0"):
        program = place.path("managed" + emulated)
        child = place.run("--ptxas-prefix", options.drop_in, "-gencode", "arch=compute_90,code=sm_90", "-cudart",
                          "shared", source, "-o", program, program=options.nvcc, PTXREWRITE_EMULATED=emulated)
        expect(child.returncode == 0, f"nvcc: {child}")
        child = place.run("exec", "--device", "emulator", "--", program, program=options.tool)
        runs = child.returncode == 0 and child.stdout == "right\n"
        expect(runs == (emulated == "1"), f"a program with cubins alone, emulated {emulated}: {child}")
        if emulated == "0":
            expect("ptxrewrite-ptxas" in child.stderr, f"the refusal says no way out: {child.stderr}")


def check_clang(place):
    clang = shutil.which("clang++")
    if not clang:
        print("left out: there is no clang++")
        return
    source = place.write("clang.cu", "__attribute__((global)) void k(int* p) { *p = 7; }\n")
    child = place.run("-x", "cuda", source, "--cuda-gpu-arch=sm_75", "--cuda-device-only", "-nocudainc", "-nocudalib",
                      "--ptxas-path=" + place.options.drop_in, "-c", "-o", "clang.cubin", program=clang,
                      PTXREWRITE_EMULATED="1")
    if "cannot find CUDA installation" in child.stderr:
        print("left out: clang++ wants a CUDA toolkit")
        return
    expect(child.returncode == 0, f"clang: {child}")
    with open(place.path("clang.cubin"), "rb") as file:
        expect(b".visible .entry" in file.read(), "clang's cubin carries no PTX")


def check_driver(place):
    """Cubins that contain PTX, ours and those of ptxas -lineinfo, through cuModuleLoadData."""
    options = place.options
    if not os.path.exists(options.nvcc):
        return
    program = place.path("driver_more")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver_more.cu")
    subprocess.run([options.nvcc, "-cudart", "shared", source, "-o", program, "-L" + options.libraries, "-lcuda"],
                   check=True)
    place.run("exec", "--device", "emulator", "--", program, "--ptx", place.path("m.ptx"), program=options.tool)
    cubins = []
    for sign, words in (("+", ["--emulated"]), ("+", ["-lineinfo"]), ("-", [])):
        cubins.append(f"{sign}{place.path(str(len(cubins)))}.cubin")
        child = place.run(*words, "-arch=sm_90", "m.ptx", "-o", cubins[-1][1:])
        expect(child.returncode == 0, f"{words}: {child}")
    child = place.run("exec", "--device", "emulator", "--", program, *cubins, program=options.tool)
    expect(child.returncode == 0 and child.stdout == "right\n", f"cubins by the driver API: {child}")
    expect("machine code for sm_90 alone" in child.stderr, f"machine code: {child.stderr}")
    child = place.run("exec", "--emulate", "a100", "--", program, cubins[0], program=options.tool)
    expect("CUDA_ERROR_NO_BINARY_FOR_GPU" in child.stdout, f"a cubin for another GPU: {child}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--drop-in", "--tool", "--nvcc", "--libraries", "--folder", "--samples"):
        parser.add_argument(name, default="")
    place = Place(parser.parse_args())
    for check in (check_passing_through, check_rewriting, check_pipe, check_emulated, check_real, check_nvcc, check_clang,
                  check_driver):
        check(place)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
