"""Recipe of Spack 1: spack repo add packaging/spack/spack_repo/clebsch. The archive is that of
`git archive --prefix=clebsch-0.3.0/ --output=clebsch-0.3.0.tar.gz HEAD`, in the folder where spack
is called: spack install --no-checksum clebsch"""
import os

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Clebsch(MesonPackage):
    """Runs O(3)-equivariant interatomic models (NequIP, Allegro, Nequix, SevenNet, MACE) and their
    kernels on every vendor's GPUs and on CPUs; drivers are opened at run time."""

    homepage = "https://example.org/clebsch"  # a packager's own
    url = f"file://{os.getcwd()}/clebsch-0.3.0.tar.gz"
    manual_download = True

    license("MIT")

    version("0.3.0")

    variant("opencl", default=True, description="Backend of OpenCL")
    variant("level_zero", default=False, description="Backend of Level Zero")

    depends_on("c", type="build")
    depends_on("meson@1:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("jansson")
    depends_on("zlib-api")
    depends_on("opencl-c-headers", when="+opencl", type="build")
    depends_on("oneapi-level-zero", when="+level_zero", type="build")

    def meson_args(self):
        def backend(name):
            return f"-D{name}={'enabled' if f'+{name}' in self.spec else 'disabled'}"

        return ["-Dtests=disabled", "-Dkim=disabled", backend("opencl"), backend("level_zero")]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_interpreter(self):
        command = Executable(self.prefix.bin.clebsch)
        command("check", "--device", "cpu:interpreter", "--op", "gate", "--part", "1/20")
