#!/usr/bin/env python3
"""Tests of what a user of the library and of the packages gets.

  headers    each public header compiles alone, and includes the standard library and its own kind only
  exports    libsava.so has a SONAME, needs no third-party type, and exports what docs/library.md names
  examples   the code of docs/library.md stands in examples/embedded/main.cc
  install    `cmake --install`: every file is there, sava(1) has every subcommand; examples/embedded
             is built against it with find_package and with pkg-config, shared and static, and prints
             what it should
  packages   the Debian packages: made by CPack, unpacked, run

Usage: tests/package/run.py --build DIR [--cxx COMPILER] NAME…
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADERS = ROOT / "include" / "sava"
PAGE = ROOT / "docs" / "library.md"
EMBEDDED = ROOT / "examples" / "embedded"


class Failed(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failed(message)


def run(*words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **options)
    check(done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def cache_value(build, name):
    match = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return match.group(1) if match else ""


# ---- headers ----


def headers(options):
    found = sorted(HEADERS.rglob("*.h"))
    check(len(found) > 15, f"only {len(found)} headers in {HEADERS}")
    for header in found:
        for line in header.read_text().splitlines():
            match = re.match(r"\s*#\s*include\s*(.*)", line)
            if not match:
                continue
            target = match.group(1)
            standard = re.fullmatch(r"<[a-z_0-9]+>", target)
            own = re.fullmatch(r'[<"]sava/([a-z_0-9/]+\.h)[>"]', target)
            check(standard or own, f"{header}: includes {target}")
            check(standard or (HEADERS / own.group(1)).is_file(), f"{header}: {target} does not exist")
        name = header.relative_to(HEADERS)
        run(options.cxx, "-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsyntax-only", "-I",
            HEADERS.parent, "-x", "c++", "-",
            input=f"#include <sava/{name}>\n#include <sava/{name}>\n")


# ---- exports ----


def exported_names(library):
    """The functions and types of the dynamic symbol table, without parameters."""
    names = set()
    for line in run("nm", "-D", "--defined-only", "--demangle", library).splitlines():
        parts = line.split(" ", 2)
        name = re.sub(r"\[abi:\w+\]", "", parts[2])
        names.add(re.sub(r"\(.*", "", name))
    return names


def documented_names():
    """Names in the table of exported names of the page."""
    section = re.search(r"^## Exported names\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    check(section, f"{PAGE} has no section on exported names")
    names = set()
    for line in section.group(1).splitlines():
        row = re.match(r"\| `(sava(?:::\w+)?)` \| (.*) \|$", line)
        if not row:
            continue
        scope, members = row.groups()
        for member in re.findall(r"`([^`]+)`", members):
            names.add(f"{scope}::{member}")
    return names


def exports(options):
    library = options.build / "src/library/libsava.so"
    dynamic = run("readelf", "-d", library)
    check(re.search(r"SONAME.*\[libsava\.so\.\d+\]", dynamic), f"no SONAME:\n{dynamic}")
    for needed in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
        check(re.match(r"lib(stdc\+\+|gcc_s|c|m|lzf|pthread)\.so|ld-linux", needed), f"needs {needed}")
    exported = exported_names(library)
    documented = documented_names()
    check(documented, f"{PAGE} documents no names")
    check(exported == documented,
          f"exported, not documented: {sorted(exported - documented)}\n"
          f"documented, not exported: {sorted(documented - exported)}")


# ---- the page's examples ----


def stripped(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def examples(_options):
    program = "\n".join(stripped((EMBEDDED / "main.cc").read_text()))
    blocks = re.findall(r"^```cpp\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    check(len(blocks) >= 12, f"{PAGE} has {len(blocks)} examples")
    for block in blocks:
        check("\n".join(stripped(block)) in program, f"examples/embedded/main.cc lacks\n{block}")


# ---- an installed tree ----


def expect_output(*words, **options):
    printed = run(*words, **options)
    expected = (EMBEDDED / "expected.txt").read_text()
    check(printed == expected, f"{words[0]} printed\n{printed}instead of\n{expected}")


def check_documents(prefix, etc, sava):
    for name in ("share/man/man1/sava.1", "lib/systemd/system/sava.service", "share/doc/sava/README.md"):
        check((prefix / name).is_file(), f"{prefix / name} is not installed")
    check((etc / "sava/sava.conf").is_file(), f"{etc}/sava/sava.conf is not installed")
    unit = (prefix / "lib/systemd/system/sava.service").read_text()
    start = re.search(r"^ExecStart=(\S+) serve (\S+)", unit, re.M)
    check(start, f"no ExecStart:\n{unit}")
    check("redis_version" in run(sava, "version"), f"{sava} version")
    page = (prefix / "share/man/man1/sava.1").read_text()
    subcommands = set(re.findall(r"^  sava ([a-z-]+) ", run(sava, "help"), re.M))
    described = set(re.findall(r"^\.TP\n\.B ([a-z-]+)$", page, re.M))
    check(len(subcommands) > 8 and subcommands - {"help"} <= described,
          f"sava(1) lacks {sorted(subcommands - described)}")
    module = pathlib.Path(run(sava, "module-path").strip())
    check(module.resolve() == (prefix / "lib/sava/sava.so").resolve(), f"module-path printed {module}")
    return start.groups()


def use_library(prefix, options, work):
    """Builds and runs the example against a tree, with CMake and with pkg-config."""
    libraries = next(prefix.rglob("libsava.so")).parent
    build = work / "embedded"
    run("cmake", "-G", "Ninja", "-S", EMBEDDED, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={options.cxx}")
    run("cmake", "--build", build)
    expect_output(build / "embedded")
    expect_output(build / "embedded_static", env={})
    environment = {"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "sava", env=environment).split()
    check(run("pkg-config", "--modversion", "sava", env=environment).strip() in
          (EMBEDDED / "expected.txt").read_text(), "pkg-config tells another version")
    program = work / "by_pkg_config"
    run(options.cxx, "-std=c++20", EMBEDDED / "main.cc", *flags, "-o", program)
    expect_output(program, env={"LD_LIBRARY_PATH": str(libraries)})


def install(options):
    with tempfile.TemporaryDirectory(dir=options.build) as folder:
        work = pathlib.Path(folder)
        prefix = work / "first"
        run("cmake", "--install", options.build, "--prefix", prefix)
        binary, configuration = check_documents(prefix, prefix / "etc", prefix / "bin/sava")
        check(pathlib.Path(binary) == prefix / "bin/sava", f"the unit starts {binary}")
        check(pathlib.Path(configuration).is_file(), f"the unit reads {configuration}")
        for header in HEADERS.rglob("*.h"):
            installed = prefix / "include/sava" / header.relative_to(HEADERS)
            check(installed.read_text() == header.read_text(), f"{installed} differs")
        # A tree may be moved: nothing in it names the place it was installed to, but the unit.
        moved = work / "second"
        prefix.rename(moved)
        use_library(moved, options, work)


# ---- Debian packages ----


def packages(options):
    if not shutil.which("dpkg-deb") or not shutil.which("dpkg-shlibdeps"):
        print("packages: not a Debian system, or dpkg-dev is not installed: skipped")
        return
    made = options.build / "packages"
    shutil.rmtree(made, ignore_errors=True)
    run("cpack", "--config", options.build / "CPackConfig.cmake", cwd=options.build)
    found = {p.name.split("_")[0]: p for p in made.glob("*.deb")}
    check({"sava", "libsava0", "libsava-dev"} <= set(found), f"made {sorted(found)}")
    with tempfile.TemporaryDirectory(dir=options.build) as folder:
        work = pathlib.Path(folder)
        tree = work / "tree"
        for name in ("sava", "libsava0", "libsava-dev"):
            run("dpkg-deb", "-x", found[name], tree)
        check(not (tree / "usr/etc").exists(), "configuration is in /usr/etc")
        binary, configuration = check_documents(tree / "usr", tree / "etc", tree / "usr/bin/sava")
        check((binary, configuration) == ("/usr/bin/sava", "/etc/sava/sava.conf"),
              f"the unit starts {binary} with {configuration}")
        check("/etc/sava/sava.conf" in run("dpkg-deb", "--info", found["sava"], "conffiles"), "no conffile")
        depends = run("dpkg-deb", "--field", found["sava"], "Depends")
        check("libc6" in depends, f"sava depends on {depends}")
        check("libsava0 (=" in run("dpkg-deb", "--field", found["libsava-dev"], "Depends"),
              "libsava-dev does not depend on its library")
        contents = run("dpkg-deb", "--contents", found["libsava0"])
        check(re.search(r"/libsava\.so\.0\b", contents) and "libsava.a" not in contents, contents)
        use_library(tree / "usr", options, work)


TESTS = {"headers": headers, "exports": exports, "examples": examples, "install": install,
         "packages": packages}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cxx")
    parser.add_argument("names", nargs="*", choices=[*TESTS, []])
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.cxx = options.cxx or cache_value(options.build, "CMAKE_CXX_COMPILER") or "g++"
    for name in options.names or TESTS:
        try:
            TESTS[name](options)
        except Failed as failure:
            print(f"{name}: FAILED\n{failure}")
            return 1
        print(f"{name}: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
