"""Builds torch_catenary against the torch that is installed, and the Catenary library.

The library is looked for where CATENARY_PREFIX says (what `cmake --install` filled), in the tree that
this directory is a part of (the release build, or in the directory CATENARY_LIBRARY), and by pkg-config.
"""
import os
import pathlib
import subprocess

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

HERE = pathlib.Path(__file__).resolve().parent


def library():
    """(directories of headers, directory of libnccl.so)"""
    prefix = os.environ.get("CATENARY_PREFIX")
    if prefix:
        if not os.path.isabs(prefix):
            raise SystemExit(f"CATENARY_PREFIX is {prefix!r}, but must begin with /, as pip builds in another directory")
        found = sorted(pathlib.Path(prefix).glob("lib*/**/libnccl.so"))
        if not found:
            raise SystemExit(f"there is no libnccl.so in {prefix}/lib or the like, which CATENARY_PREFIX names")
        return [f"{prefix}/include"], str(found[0].parent)
    tree = HERE.parent.parent
    built = pathlib.Path(os.environ.get("CATENARY_LIBRARY", tree / "build" / "release" / "lib"))
    if (built / "libnccl.so").exists():
        return [str(tree / "include")], str(built)

    def ask(variable):
        command = ["pkg-config", f"--variable={variable}", "catenary"]
        try:
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            raise SystemExit(
                f"no Catenary library: neither in {built}, where ./dev build puts it, nor known to pkg-config; "
                "install it, and say where by CATENARY_PREFIX=/absolute/path") from None

    return [ask("includedir")], ask("libdir")


def one_source():
    """All sources in one, since each would read torch's headers for twenty seconds."""
    sources = sorted((HERE / "csrc").glob("*.cc"))
    made = HERE / "build" / "all.cc"
    made.parent.mkdir(exist_ok=True)
    made.write_text("".join(f'#include "../csrc/{source.name}"\n' for source in sources))
    return os.path.relpath(made, HERE)


headers, libraries = library()
setup(
    ext_modules=[
        CppExtension(
            "torch_catenary._backend", [one_source()],
            depends=[str(path) for path in sorted((HERE / "csrc").iterdir())],
            include_dirs=[str(HERE / "csrc"), *headers], library_dirs=[libraries],
            libraries=["nccl"], runtime_library_dirs=[libraries],
            extra_compile_args=["-std=c++20", "-O2", "-g0", "-fvisibility=hidden", "-Wall"])
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)})
