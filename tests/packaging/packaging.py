#!/usr/bin/python3
"""Installs Rondo and uses it as other people's programs do.

usage: packaging.py --source DIR --build DIR --work DIR STEP...

Steps that make something: install-static, install-shared. Steps that need both: headers, symbols, files,
find-package-static, find-package-shared, pkg-config. On their own: nested, desktop-stream, own-network, scaling-experiment. CC and CXX name the compilers.
Below --work lie `static` and `shared`, the two installations, each moved there after it was installed elsewhere.
"""
import argparse
import glob
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

CONSUMERS = ["plain", "beside_libvulkan", "beside_volk", "own_device", "beside_json_and_fmt"]
CXX = os.environ.get("CXX", "c++")
# Names of the public API, as nm -C prints them.
PUBLIC = re.compile(r"rondo::(?!runtime::|graph::|models::|fmt::)")
# What the library is made with and an installation must not ask for.
PRIVATE = re.compile(r"fmt|nlohmann|volk|vulkan|glslang", re.I)
STRICT = "-std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror -fno-exceptions -fno-rtti".split()


def check(condition, message):
    if not condition:
        sys.exit(f"packaging: {message}")


def run(*command, env=None, stdin=None):
    """Runs a command and returns its output; ends the test with all of it if the command fails."""
    print("+", *command, flush=True)
    done = subprocess.run(command, env={**os.environ, **(env or {})}, input=stdin, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, f"exit status {done.returncode}:\n{done.stdout}")
    return done.stdout


def configure_and_build(source, build, settings, targets):
    shutil.rmtree(build, ignore_errors=True)
    # Neither optimised nor with debug information: what is tested does not depend on it, and the machine may be slow.
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=None", *settings)
    run("cmake", "--build", build, "--parallel", str(os.cpu_count()), "--target", *targets)


def install(build, prefix):
    """Installs and moves the result, so that whatever remembers its place is found out."""
    for folder in (prefix, prefix + ".first"):
        shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "--install", build, "--prefix", prefix + ".first")
    os.rename(prefix + ".first", prefix)


def find_one(prefix, pattern):
    found = glob.glob(f"{prefix}/**/{pattern}", recursive=True)
    check(len(found) == 1, f"{pattern} below {prefix}: {found}")
    return found[0]


def make_deps_dir(folder):
    """Headers as RONDO_DEPS_DIR takes them, in several of the layouts; copies, because links tell where they lead."""
    include = next(d for d in ("/usr/include", "/usr/local/include") if os.path.exists(d + "/volk.c"))
    shutil.rmtree(folder, ignore_errors=True)
    for source, target in (("fmt", "fmt/include/fmt"), ("nlohmann", "nlohmann"), ("volk.c", "volk/volk.c"),
                           ("volk.h", "volk/volk.h"), ("vulkan", "Vulkan-Headers/include/vulkan"),
                           ("vk_video", "Vulkan-Headers/include/vk_video")):
        os.makedirs(os.path.dirname(f"{folder}/{target}"), exist_ok=True)
        if os.path.isdir(f"{include}/{source}"):
            shutil.copytree(f"{include}/{source}", f"{folder}/{target}")
        else:
            shutil.copy(f"{include}/{source}", f"{folder}/{target}")


def install_static(work, source, build):
    install(build, work + "/static")


def install_shared(work, source, build):
    deps = work + "/deps"
    make_deps_dir(deps)
    settings = ["-DRONDO_SHARED=ON", "-DRONDO_BUILD_TOOLS=OFF", "-DRONDO_BUILD_SAMPLES=OFF", "-DRONDO_UNITY_LIBRARY=ON", f"-DRONDO_DEPS_DIR={deps}"]
    configure_and_build(source, work + "/build-shared", settings, ["all"])
    used = run("ninja", "-C", work + "/build-shared", "-t", "deps")
    for header in ("fmt/include/fmt/core.h", "nlohmann/json.hpp", "volk/volk.h", "Vulkan-Headers/include/vulkan/vulkan_core.h"):
        check(f"{deps}/{header}" in used, f"{header} was not taken from RONDO_DEPS_DIR")
    system = set(re.findall(r"^ +(/usr/\S*/(?:fmt|nlohmann|volk|vulkan)\S*)", used, re.M))
    check(not system, f"in spite of RONDO_DEPS_DIR, these were used: {sorted(system)[:5]}")
    install(work + "/build-shared", work + "/shared")


def headers(work, source, build):
    """Each header compiles alone, twice included, on strict compilers, and brings in nothing private."""
    folder = work + "/static/include"
    names = [name for name in os.listdir(folder + "/rondo")]
    expected = {f for f in os.listdir(source + "/include/rondo") if f.endswith(".h")} | {"version.h"}
    check(set(names) == expected, f"installed headers are {sorted(names)}, expected {sorted(expected)}")
    for compiler in filter(shutil.which, dict.fromkeys([CXX, "clang++"])):
        for name in names:
            text = f"#include <rondo/{name}>\n#include <rondo/{name}>\n"
            run(compiler, *STRICT, "-I", folder, "-fsyntax-only", "-x", "c++", "-", stdin=text)
            needed = run(compiler, "-std=c++20", "-I", folder, "-M", "-x", "c++", "-", stdin=text)
            private = set(re.findall(r"\S*/(?:fmt|nlohmann|volk|vulkan|vk_video)/?\S*", needed.replace(folder, "")))
            own = re.compile(r"/rondo/vulkan\.h$" if name != "vulkan.h" else r"/(vulkan|vk_video)/\w+\.h$|/rondo/vulkan\.h$")
            check(all(own.search(path) for path in private), f"{name} needs {private}")


def symbols(work, source, build):
    """The shared library shows the public API only; the static one defines no names that a host may have."""
    library = os.path.realpath(find_one(work + "/shared", "librondo.so"))
    dynamic = run("readelf", "-dW", library)
    soname = re.search(r"SONAME.*\[(.*)\]", dynamic).group(1)
    check(re.fullmatch(r"librondo\.so\.\d+\.\d+", soname), f"the shared library calls itself {soname}")
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    check(not any(PRIVATE.search(name) for name in needed), f"the shared library needs {needed}")
    shown = [line.split(" ", 2)[1:] for line in run("nm", "-DC", "--defined-only", library).splitlines()]
    wrong = [f"{kind} {name}" for kind, name in shown if kind != "T" or not PUBLIC.match(name)]
    check(len(shown) > 40 and not wrong, f"{len(shown)} symbols are shown; these should not be: {wrong[:20]}")

    archive = find_one(work + "/static", "librondo.a")
    public = re.findall(r"^[0-9a-f]+ T (.*)$", run("nm", "-C", "--defined-only", archive), re.M)
    missing = {name for name in public if PUBLIC.match(name)} - {name for _, name in shown}
    check(not missing, f"RONDO_API is missing at {sorted(missing)}")
    lines = run("nm", "--defined-only", "--extern-only", archive).splitlines()
    defined = {line.split()[-1] for line in lines if re.search(r" [A-Za-z] \S+$", line)}
    wrong = sorted(name for name in defined if re.match(r"vk[A-Z]|volk", name))
    # Names of fmt and nlohmann-json in their own namespaces, where a host's copies of the same version live too.
    wrong += sorted(name for name in defined if re.search(r"3fmt\d+v\d|8nlohmann\d+json", name))
    check(len(defined) > 100 and not wrong, f"the archive defines names of others: {wrong[:20]}")


def files(work, source, build):
    """What is installed knows no folder of this machine, and its package files name nothing private."""
    places = [os.fsencode(os.path.realpath(p)) for p in (work, source, build)] + [os.fsencode(p) for p in (work, source, build)]
    n_files = 0
    for kind in ("static", "shared"):
        for folder, _, names in os.walk(f"{work}/{kind}"):
            for name in names:
                with open(f"{folder}/{name}", "rb") as file:
                    content = file.read()
                n_files += 1
                check(not any(place in content for place in places), f"{folder}/{name} holds a path of this machine")
                if name.endswith((".cmake", ".pc")):
                    text = content.decode().replace("Transformer models on any Vulkan GPU", "")
                    check(not PRIVATE.search(text), f"{folder}/{name} names {PRIVATE.search(text)}")
    check(n_files > 20, f"only {n_files} files are installed")


def run_consumers(build, source, names):
    for name in names:
        print(run(f"{build}/{name}", source + "/samples/models/kjv-q8_0.gguf"), flush=True)


def find_package(work, source, build, kind):
    consumers = f"{work}/build-find-{kind}"
    configure_and_build(source + "/tests/packaging/consumers", consumers, [f"-DCMAKE_PREFIX_PATH={work}/{kind}"], CONSUMERS)
    run_consumers(consumers, source, CONSUMERS)


def pkg_config(work, source, build):
    for kind in ("static", "shared"):
        pc = find_one(f"{work}/{kind}", "rondo.pc")
        env = {"PKG_CONFIG_PATH": os.path.dirname(pc), "LD_LIBRARY_PATH": os.path.dirname(os.path.dirname(pc))}
        flags = run("pkg-config", "--cflags", "--libs", "rondo >= 0.1", env=env).split()
        check(f"-I{work}/{kind}/include" in [os.path.normpath(f) for f in flags], f"rondo.pc gives {flags}")
        program = f"{work}/pkg-config-{kind}"
        run(CXX, "-std=c++20", source + "/tests/packaging/consumers/plain.cpp", "-o", program, *flags)
        print(run(program, source + "/samples/models/kjv-q8_0.gguf", env=env))


def nested(work, source, build):
    """The whole library once more only for RONDO_TEST_THOROUGH: what being below another project may break is how things are compiled."""
    consumers = work + "/build-nested"
    programs = ["plain", "own_device"]
    thorough = os.environ.get("RONDO_TEST_THOROUGH") == "1"
    objects = [f"CMakeFiles/{name}.dir/{name}.cpp.o" for name in programs] + ["rondo/CMakeFiles/rondo_objects.dir/runtime/kernel.cpp.o"]
    configure_and_build(source + "/tests/packaging/consumers", consumers, [f"-DRONDO_SOURCE={source}"], programs if thorough else objects)
    if thorough:
        run_consumers(consumers, source, programs)
    commands = run("ninja", "-C", consumers, "-t", "commands", "plain")
    command = next(line for line in commands.splitlines() if "plain.cpp.o -c" in line)
    check(not re.search(r"-fno-|fmt|FMT|nlohmann|NLOHMANN|generated|prefix-map", command), f"the host is compiled with {command}")


def own_network(work, source, build):
    """The sample: two runs of one program, the second of what the first gave."""
    done = subprocess.run([build + "/bin/own_network"], capture_output=True, text=True)
    print(done.stdout, done.stderr, flush=True)
    check(done.returncode == 0, f"own_network ended with {done.returncode}")
    lines = re.findall(r"^y\[0\] = (-?\d+\.\d+), [1-9]\d* dispatches, [1-9]\d* bytes on the device$", done.stdout, re.M)
    check(len(lines) == 2 and lines[0] != lines[1], "there are not two results")


def scaling_experiment(work, source, build):
    """The sample: scores have the variance that theory says, and scaled ones leave softmax about as it is at any width."""
    rows = re.findall(r"^\| (\d+) \| (q k(?: / sqrt\(d\))?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", run(build + "/bin/scaling_experiment"), re.M)
    table = {(int(width), scores == "q k"): [float(x) for x in numbers] for width, scores, *numbers in rows}
    widths = (16, 64, 256, 1024)
    check(sorted(table) == [(width, plain) for width in widths for plain in (False, True)], f"the table has the rows {sorted(table)}")
    for width in widths:
        # The estimate's relative deviation is 5 % at a width of 16, 1.3 % at 1024.
        for plain, expected in ((True, width), (False, 1)):
            variance = table[width, plain][0]
            check(abs(variance / expected - 1) < 0.1, f"the variance at width {width} is {variance} instead of {expected}")
        # Of scores of variance 1: ln 64 - 1/2 for many keys; the largest of 64 is about 2.4, so exp(2.4) / (64 exp(1/2)) = 0.10.
        largest, entropy = table[width, False][1:]
        check(abs(entropy - 3.66) < 0.1 and abs(largest - 0.10) < 0.03, f"scaled scores of width {width} give {largest} and {entropy}")
    for narrow, wide in zip(widths, widths[1:]):
        check(table[wide, True][1] > table[narrow, True][1] and table[wide, True][2] < table[narrow, True][2], f"softmax is not sharper at width {wide} than at {narrow}")
    check(table[1024, True][1] > 0.9, "one key should have nearly all weight at width 1024")


def desktop_stream(work, source, build):
    """The sample, without a terminal and on one where `q` is pressed: while text comes, and while the model loads."""
    command = [build + "/bin/desktop_stream", source + "/samples/models/kjv-q8_0.gguf", "And Jesus answered"]
    done = subprocess.run([*command, "24"], capture_output=True, text=True)
    print(done.stdout, done.stderr, flush=True)
    check(done.returncode == 0, f"desktop_stream ended with {done.returncode}")
    check(done.stdout.startswith("And Jesus answered ") and len(done.stdout.split()) > 10, "there is no text")
    for pattern in (r"^[1-9]\d* frames while loading, \d+ over 1/60 s, the worst [\d.]+ ms$", r"^[1-9]\d* frames while streaming, ",
                    r"^worst call: .*, [\d.]+ ms; .*: [\d.]+ ms$", r"^24 tokens$"):
        check(re.search(pattern, done.stderr, re.M), f"its report lacks {pattern}")

    for note in (b"o  (q quits)", b"o  (loading; q quits)"):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(command[0], [*command, "100000"])
        seen, pressed, give_up = b"", None, time.time() + 120
        while time.time() < give_up:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # its end is closed
                break
            if pressed is None and note in seen:
                os.write(terminal, b"q")
                pressed = time.time()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if pressed else None
        check(status == 0, f"on a terminal, it ended with {status} after {seen[-500:]}")
        check(b"tokens, cancelled" in seen, f"it was not cancelled: {seen[-500:]}")
        os.close(terminal)
        print(f"ended {time.time() - pressed:.2f} s after q")


STEPS = {
    "install-static": install_static, "install-shared": install_shared, "headers": headers, "symbols": symbols,
    "files": files, "pkg-config": pkg_config, "nested": nested, "desktop-stream": desktop_stream,
    "own-network": own_network,
    "scaling-experiment": scaling_experiment,
    "find-package-static": lambda *folders: find_package(*folders, "static"),
    "find-package-shared": lambda *folders: find_package(*folders, "shared"),
}


def main():
    parser = argparse.ArgumentParser(description="Installs Rondo and uses it as other people's programs do.")
    for folder in ("source", "build", "work"):
        parser.add_argument("--" + folder, required=True, type=os.path.abspath)
    parser.add_argument("step", nargs="+", choices=STEPS)
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    for step in arguments.step:
        start = time.time()
        STEPS[step](arguments.work, arguments.source, arguments.build)
        print(f"packaging: {step}: done in {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
