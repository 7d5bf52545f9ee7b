# SPDX-License-Identifier: MIT
from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class Xio(AutotoolsPackage):
    """Communication and storage runtime for GPUs: kernels put, get, read and write by themselves."""

    homepage = "https://xio.example.org"
    url = "https://xio.example.org/xio-0.1.0.tar.gz"
    license("MIT")

    # Of a clone, by spack develop: spack develop --path CLONE xio@main
    version("main", branch="main", git="https://xio.example.org/xio.git")

    variant("gpu", default="host", values=("host", "hip", "cuda"), description="Whose kernels; host: CPU threads")
    variant("mpi", default=True, description="Module for the MPI that programs are started with")
    variant("ucx", default=False, description="Bootstrap over UCX")
    variant("verbs", default=True, description="RDMA devices by libibverbs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    for tool in ("autoconf", "automake", "help2man", "libtool", "m4"):
        depends_on(tool, type="build")
    depends_on("pkgconfig", type="build")
    depends_on("boost+context")
    for library in ("cli11", "fmt", "hwloc@2:", "libsodium", "liburing", "nlohmann-json", "spdlog"):
        depends_on(library)
    depends_on("mpi", when="+mpi")
    depends_on("ucx", when="+ucx")
    depends_on("rdma-core", when="+verbs")
    depends_on("hip", when="gpu=hip")
    depends_on("cuda", when="gpu=cuda")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def configure_args(self):
        return [f"--with-gpu={self.spec.variants['gpu'].value}"] + self.with_or_without("mpi") + \
            self.with_or_without("ucx") + self.with_or_without("verbs")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def relay(self):
        Executable("./xiorun")("-n", "2", "examples/hello_put")
