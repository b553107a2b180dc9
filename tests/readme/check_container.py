#!/usr/bin/env python3
"""The container recipe against other descriptions of the build: its commands are those of bootstrap and of the
package target, it copies what that target makes, and it starts a program of the package, on the Debian that
bootstrap supports; it leaves out no sources. Even if podman or docker is installed, nothing is built: that takes a
network and ten minutes.

usage: check_container.py ROOT BUILD_FOLDER
"""
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys


def instructions(text):
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def commands(recipe):
    """Words of each command of RUN lines."""
    for kind, rest in recipe:
        if kind == "RUN":
            for command in rest.split("&&"):
                yield shlex.split(command)


def main():
    root, build = sys.argv[1:3]

    def read(name):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            return file.read()

    recipe, bootstrap, readme = instructions(read("Containerfile")), read("bootstrap"), read("README.md")
    failures = []

    def check(holds, message):
        if not holds:
            failures.append(message)

    run = list(commands(recipe))
    debian = re.search(r"fresh Debian (\d+)", bootstrap).group(1)
    bases = [rest.split()[0] for kind, rest in recipe if kind == "FROM"]
    check(bases == [f"debian:{debian}"] * 2, f"bases {bases}, and bootstrap is for Debian {debian}")
    check(run[0][0] == "./bootstrap" and re.search(rf"^#   ./bootstrap {run[0][1]} ", bootstrap, re.MULTILINE),
          f"bootstrap has no {run[0][1:]}")
    check(subprocess.run(["bash", "-n", os.path.join(root, "bootstrap")], check=False).returncode == 0, "bootstrap is wrong")
    # It makes packages: the preset's build folder, an existing target.
    presets = {one["name"]: one["binaryDir"] for one in json.loads(read("CMakePresets.json"))["configurePresets"]}
    making = re.search(r"^  cmake --build --preset (\w+) --target (package)$", bootstrap, re.MULTILINE)
    check(run[0][1] == "package" and making and making[1] in presets, "bootstrap makes no packages")
    preset, target = making.groups()
    targets = subprocess.run(["cmake", "--build", build, "--target", "help"], capture_output=True, text=True, check=False)
    check(re.search(rf"^{target}:", targets.stdout, re.MULTILINE), f"the build has no target {target}")
    # The copied files are those that cpack names: NAME_VERSION_ARCHITECTURE.deb in the build folder.
    with open(os.path.join(build, "CPackConfig.cmake"), encoding="utf-8") as file:
        cpack = dict(re.findall(r'^set\((CPACK_\w+) "(.*)"\)$', file.read(), re.MULTILINE))
    check(cpack["CPACK_DEBIAN_FILE_NAME"] == "DEB-DEFAULT" and cpack["CPACK_GENERATOR"] == "DEB", "cpack names packages otherwise")
    name = f"{cpack['CPACK_DEBIAN_RUNTIME_PACKAGE_NAME']}_{cpack['CPACK_PACKAGE_VERSION']}_amd64.deb"
    copied = [shlex.split(rest) for kind, rest in recipe if kind == "COPY"]
    source = [rest.split()[0] for kind, rest in recipe if kind == "WORKDIR"][0]
    pattern = copied[1][1]
    check(copied[0] == [".", source] and copied[1][0] == "--from=build", f"copies {copied}")
    check(fnmatch.fnmatch(f"{presets[preset].replace('${sourceDir}', source)}/{name}", pattern), f"{name} is not {pattern}")
    dev = name.replace(cpack["CPACK_DEBIAN_RUNTIME_PACKAGE_NAME"], cpack["CPACK_DEBIAN_DEV_PACKAGE_NAME"])
    check(not fnmatch.fnmatch(dev, os.path.basename(pattern)), f"{dev} is copied, too")
    installed = [word for words in run if words[:2] == ["apt-get", "install"] for word in words if word.endswith(".deb")]
    check(installed == [copied[1][2] + os.path.basename(pattern)], f"installs {installed}")
    # The entry point is a program of the package, and the examples are commands of it that other pages have.
    started = [json.loads(rest) for kind, rest in recipe if kind == "ENTRYPOINT"]
    check(started == [["ptxrewrite"]] and "podman build -t ptxrewrite ." in readme, f"starts {started}; README")
    ignored = read(".containerignore")
    check(ignored == read(".dockerignore"), ".containerignore and .dockerignore differ")
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=False).stdout.splitlines()
    check(not [name for name in listed if name.split("/")[0] in ignored.split()], "sources are left out")
    for failure in failures:
        print("FAILED:", failure)
    print(f"{len(run)} commands, {len(recipe)} instructions")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
