// SPDX-License-Identifier: MIT
#include "bootstrap/mpi_library.hpp"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "base/error.hpp"
#include "base/kept_handlers.hpp"
#include "base/log.hpp"
#include "config.h"

namespace xio::bootstrap {

namespace {

namespace fs = std::filesystem;

// The file that this function was loaded from: libxio, or a program. Of a program the loader knows no more than how it
// was called.
fs::path own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  const auto here = reinterpret_cast<const void*>(&own_file);
  std::error_code failed;
  if (dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
  if (map->l_name == nullptr || *map->l_name == '\0') return fs::read_symlink("/proc/self/exe", failed);
  return fs::canonical(map->l_name, failed);
}

// Where libxio's modules lie, in the order in which they are looked at: XIO_MODULES; xio/ beside the file that libxio's
// code is in, which a moved installation has too; the same seen from a program that libxio is linked into; the build's
// own folder; and where configure was told to install them. XIO_MODULES is not heard where a program runs with rights
// that its user has not.
std::vector<std::string> module_folders(const bootstrap_options& o) {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& folder) {
    const std::string name = folder.lexically_normal().string();
    if (std::find(folders.begin(), folders.end(), name) == folders.end()) folders.push_back(name);
  };
  if (!o.modules.empty() && getauxval(AT_SECURE) == 0) add(o.modules);
  if (const fs::path file = own_file(); !file.empty()) {
    const fs::path beside = file.parent_path();
    add(beside / "xio");
    add(beside / XIO_LIBDIR_FROM_BINDIR / "xio");
    add(beside.filename() == ".libs" ? beside : beside / ".libs");
  }
  add(fs::path(XIO_LIBDIR) / "xio");
  return folders;
}

struct abi_facts {
  mpi_abi abi;
  const char* name;
  const char* marker;  // what programs that were compiled with its mpi.h may refer to, and those of others never
  const char* module;
  const char* package;
};
constexpr abi_facts k_abis[] = {
    {mpi_abi::open_mpi, "Open MPI", "ompi_mpi_comm_world", "xio-mpi-openmpi.so", "libopenmpi-dev"},
    {mpi_abi::mpich, "MPICH", "MPIR_Dup_fn", "xio-mpi-mpich.so", "libmpich-dev"},
};
const abi_facts& facts(mpi_abi abi) { return k_abis[static_cast<std::size_t>(abi)]; }

struct loaded_mpi {
  mpi_abi abi;
  void* library;  // for dlsym; RTLD_DEFAULT: the names are the process's
};

std::optional<mpi_abi> abi_in(void* library) {
  for (const abi_facts& f : k_abis)
    if (dlsym(library, f.marker) != nullptr) return f.abi;
  return {};
}

// Whether MPI_Initialized, MPI_Finalized say so; they are the same in every MPI.
bool says(void* library, const char* name) {
  int (*ask)(int*) = nullptr;
  void* found = dlsym(library, name);
  if (found == nullptr) return false;
  std::memcpy(&ask, &found, sizeof ask);
  int flag = 0;
  return ask(&flag) == 0 && flag != 0;
}
bool is_started(const loaded_mpi& m) { return says(m.library, "MPI_Initialized") && !says(m.library, "MPI_Finalized"); }

// Files of the process that may be an MPI: libmpi.so.40, libmpich.so.12, libmpi_cray.so.12.
std::vector<std::string> mpi_files() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        if (path.substr(path.rfind('/') + 1).starts_with("libmpi"))
          static_cast<std::vector<std::string>*>(out)->emplace_back(path);
        return 0;
      },
      &files);
  return files;
}

// The process's names come first: a profiler of MPI has its own before those of the library, and the objects of a
// library that a program refers to may lie in the program. A library that a plugin of the program brought, as Python's
// modules do, shows its names to that plugin alone. Where there are several MPIs the one that was started counts.
std::optional<loaded_mpi> find_loaded() {
  std::optional<loaded_mpi> first;
  if (const auto abi = abi_in(RTLD_DEFAULT)) first = {*abi, RTLD_DEFAULT};
  if (first && is_started(*first)) return first;
  for (const std::string& file : mpi_files()) {
    void* library = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const auto abi = abi_in(library);
    if (abi && (!first || is_started({*abi, library}))) {
      first = {*abi, library};  // stays open: MPI is not unloaded before the process ends
      if (is_started(*first)) break;
    } else {
      dlclose(library);
    }
  }
  return first;
}

// Of a process that has no MPI, the likely one first. PMIx is what Open MPI speaks, PMI is MPICH's.
std::vector<mpi_abi> launchers_mpis() {
  if (is_set("OMPI_COMM_WORLD_SIZE")) return {mpi_abi::open_mpi};
  if (is_set("PMI_RANK") && !is_set("PMIX_RANK")) return {mpi_abi::mpich, mpi_abi::open_mpi};
  return {mpi_abi::open_mpi, mpi_abi::mpich};
}

struct found_module {
  mpi_abi abi;
  std::string path;
};

std::optional<found_module> find_module(const std::vector<mpi_abi>& abis, const std::vector<std::string>& folders) {
  for (const mpi_abi abi : abis)
    for (const std::string& folder : folders)
      if (std::string path = folder + "/" + facts(abi).module; access(path.c_str(), R_OK) == 0)
        return found_module{abi, path};
  return {};
}

[[noreturn]] void refuse_without_module(const std::vector<mpi_abi>& abis, const std::vector<std::string>& folders) {
  const abi_facts& f = facts(abis.front());
  fail(XIO_ERR_UNSUPPORTED,
       "the MPI bootstrap needs libxio's module for {}, and there is no {} in {}; install it (on Debian the package "
       "libxio-mpi; a build has it where {} is installed), set XIO_MODULES to its folder, or start with xiorun",
       f.name, f.module, fmt::join(folders, ", "), f.package);
}

const char* loaders_reason() {
  const char* why = dlerror();
  return why != nullptr ? why : "no reason given";
}

const xio_mpi_module_t& open_module(const found_module& at) {
  constexpr const char* k_cure = "install libxio and its modules of one version";
  void* file = dlopen(at.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr)
    fail(XIO_ERR_UNSUPPORTED, "libxio's module for {} cannot be loaded: {}; {}", mpi_name(at.abi), loaders_reason(),
         k_cure);
  const auto* module = static_cast<const xio_mpi_module_t*>(dlsym(file, XIO_MPI_MODULE_NAME));
  if (module == nullptr)
    fail(XIO_ERR_UNSUPPORTED, "{} is no module of libxio's: it has no {}; {}", at.path, XIO_MPI_MODULE_NAME, k_cure);
  if (module->version != XIO_MPI_MODULE_VERSION)
    fail(XIO_ERR_UNSUPPORTED, "{} has interface {} and this libxio has {}; {}", at.path, module->version,
         XIO_MPI_MODULE_VERSION, k_cure);
  if (module->calls_bytes != sizeof(xio_mpi_calls_t))
    fail(XIO_ERR_UNSUPPORTED, "{} has {} bytes of calls and this libxio has {}; {}", at.path, module->calls_bytes,
         sizeof(xio_mpi_calls_t), k_cure);
  return *module;
}

// For all to see, as if libxio were linked with it: Open MPI's own plugins look for its names in the process.
void* open_library(const xio_mpi_module_t& module, mpi_abi abi) {
  const kept_handlers keep(kept_handlers::which::all);
  std::string why;
  for (const char* const* name = module.libraries; *name != nullptr; ++name) {
    if (dlopen(*name, RTLD_LAZY | RTLD_GLOBAL) != nullptr) return RTLD_DEFAULT;
    why += fmt::format("{}{}", why.empty() ? "" : "; ", loaders_reason());
  }
  fail(XIO_ERR_UNSUPPORTED,
       "the MPI bootstrap cannot load {}: {}; install it or add its folder to LD_LIBRARY_PATH, or start with xiorun",
       mpi_name(abi), why);
}

const xio_mpi_calls_t* load(const bootstrap_options& o) {
  const auto loaded = find_loaded();
  const auto abis = loaded ? std::vector{loaded->abi} : launchers_mpis();
  const auto folders = module_folders(o);
  const auto at = find_module(abis, folders);
  if (!at) refuse_without_module(abis, folders);
  const xio_mpi_module_t& module = open_module(*at);
  void* library = loaded ? loaded->library : open_library(module, at->abi);
  const char* missing = nullptr;
  const xio_mpi_calls_t* calls = module.resolve(library, &missing);
  if (calls == nullptr)
    fail(XIO_ERR_UNSUPPORTED, "the MPI bootstrap: this {} has no {}; use one with MPI 3.0, or start with xiorun",
         mpi_name(at->abi), missing != nullptr ? missing : "functions");
  log::debug("MPI is {}, by {}{}", mpi_name(at->abi), at->path, loaded ? "" : ", which has loaded it");
  return calls;
}

}  // namespace

const char* mpi_name(mpi_abi abi) { return facts(abi).name; }

mpi_abi expected_mpi(const bootstrap_options& o) {
  if (const auto loaded = find_loaded()) return loaded->abi;
  const auto abis = launchers_mpis();
  const auto at = find_module(abis, module_folders(o));
  return at ? at->abi : abis.front();
}

bool has_mpi() { return find_loaded().has_value(); }

bool is_mpi_started() {
  const auto loaded = find_loaded();
  return loaded && is_started(*loaded);
}

const xio_mpi_calls_t& load_mpi(const bootstrap_options& o) {
  static std::mutex lock;
  static const xio_mpi_calls_t* calls = nullptr;
  const std::lock_guard hold(lock);
  if (calls == nullptr) calls = load(o);
  return *calls;
}

}  // namespace xio::bootstrap
