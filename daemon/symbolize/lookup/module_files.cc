#include "daemon/symbolize/lookup/module_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/mach_o.h"
#include "formats/core/text/hex.h"
#include "storage/fs/descriptor.h"

namespace collect::symbolize {
namespace {

constexpr char kSystemDebugDirectory[] = "/usr/lib/debug";
constexpr std::string_view kDsymEnding = ".dSYM";
constexpr const char* kNeverBelow[] = {"/proc", "/sys", "/dev"};
// Files of these are answers of the kernel, wherever they are mounted.
constexpr uint64_t kKernelFileSystems[] = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC, SECURITYFS_MAGIC,
    SELINUX_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,  PSTOREFS_MAGIC,
    EFIVARFS_MAGIC,   DEVPTS_SUPER_MAGIC, BINFMTFS_MAGIC,      NSFS_MAGIC,    ANON_INODE_FS_MAGIC,
    PIPEFS_MAGIC,     SOCKFS_MAGIC,       HUGETLBFS_MAGIC,
};

bool is_below(std::string_view path, std::string_view root) {
  while (root.size() > 1 && root.ends_with('/')) root.remove_suffix(1);
  if (root == "/") return true;
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

// Where the kernel has no openat2: component by component, through no link at all.
int open_without_links(const std::string& path) {
  Descriptor directory(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  size_t at = 0;
  while (directory.get() >= 0) {
    at = path.find_first_not_of('/', at);
    if (at == std::string::npos) return -1;
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    if (name == "..") return -1;
    const bool is_last = path.find_first_not_of('/', end) == std::string::npos;
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_last ? 0 : O_DIRECTORY);
    Descriptor next(::openat(directory.get(), name.c_str(), flags));
    if (next.get() < 0 || is_last) return next.release();
    directory.reset(next.release());
    at = end;
  }
  return -1;
}

// A handle that says what is there, without opening it.
int find_path(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  if (fd >= 0) return static_cast<int>(fd);
  return errno == ENOSYS || errno == EPERM ? open_without_links(path) : -1;
}

std::string proc_path(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

bool is_allowed(int fd, const std::vector<std::string>& real_roots) {
  struct stat st{};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink == 0) return false;
  if (static_cast<uint64_t>(st.st_size) > kMaxModuleFileBytes) return false;
  struct statfs file_system{};
  if (::fstatfs(fd, &file_system) != 0) return false;
  const auto type = static_cast<uint32_t>(file_system.f_type);
  for (const uint64_t magic : kKernelFileSystems) {
    if (type == magic) return false;
  }
  char real[PATH_MAX];
  const ssize_t bytes = ::readlink(proc_path(fd).c_str(), real, sizeof real);
  if (bytes <= 0 || static_cast<size_t>(bytes) == sizeof real || real[0] != '/') return false;
  const std::string_view path(real, static_cast<size_t>(bytes));
  for (const char* root : kNeverBelow) {
    if (is_below(path, root)) return false;
  }
  return std::any_of(real_roots.begin(), real_roots.end(),
                     [path](const std::string& root) { return is_below(path, root); });
}

std::vector<std::string> real_paths(const std::vector<std::string>& paths) {
  std::vector<std::string> real;
  for (const std::string& path : paths) {
    const std::unique_ptr<char, void (*)(void*)> found(::realpath(path.c_str(), nullptr),
                                                       std::free);
    if (found != nullptr) real.emplace_back(found.get());
  }
  return real;
}

// The paths of the entries of a directory whose names are wanted, sorted.
std::vector<std::string> entries_of(const std::string& directory,
                                    const std::function<bool(std::string_view)>& is_wanted) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  if (entries == nullptr) return paths;
  for (size_t count = 0; count < kMaxDirectoryEntries; ++count) {
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (is_wanted(entry->d_name)) paths.push_back(fmt::format("{}/{}", directory, entry->d_name));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Apple's bundles of debug information in `directory`, or that it is, and in the dSYMs of an
// archive of Xcode: their files, under any names.
std::vector<std::string> dsym_files(const std::string& directory) {
  std::vector<std::string> bundles;
  if (std::string_view(directory).ends_with(kDsymEnding)) bundles.push_back(directory);
  for (const std::string& place : {directory, directory + "/dSYMs"}) {
    for (std::string& bundle :
         entries_of(place, [](std::string_view name) { return name.ends_with(kDsymEnding); })) {
      bundles.push_back(std::move(bundle));
    }
  }
  std::vector<std::string> files;
  for (const std::string& bundle : bundles) {
    for (std::string& file : entries_of(bundle + "/Contents/Resources/DWARF",
                                        [](std::string_view name) { return name[0] != '.'; })) {
      files.push_back(std::move(file));
    }
  }
  return files;
}

// The last component of a peer's path. Compared with names that a directory has, never opened.
std::string_view file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::vector<std::string> build_id_paths(const std::string& directory,
                                        const std::vector<uint8_t>& build_id) {
  if (build_id.size() < 2) return {};
  const std::string hex = hex_bytes(build_id);
  const std::string split = fmt::format("{}/{}", hex.substr(0, 2), hex.substr(2));
  return {fmt::format("{}/.build-id/{}.debug", directory, split),
          fmt::format("{}/.build-id/{}", directory, split),
          fmt::format("{}/{}.debug", directory, split),
          fmt::format("{}/{}.debug", directory, hex),
          fmt::format("{}/{}", directory, hex),
          fmt::format("{}/{}/debuginfo", directory, hex)};
}

std::vector<std::string> same_names(const std::string& directory, std::string_view name) {
  return entries_of(directory, [name](std::string_view found) {
    return found == name ||
           (found.ends_with(".debug") && found.substr(0, found.size() - strlen(".debug")) == name);
  });
}

}  // namespace

ModuleFile::~ModuleFile() {
  if (fd_ >= 0) ::close(fd_);
}

int ModuleFile::release() {
  return std::exchange(fd_, -1);
}

int open_module_file(const std::string& path, const std::vector<std::string>& real_roots) {
  if (!path.starts_with('/') || path.size() >= PATH_MAX || path.find('\0') != std::string::npos) {
    return -1;
  }
  const Descriptor found(find_path(path));
  if (found.get() < 0 || !is_allowed(found.get(), real_roots)) return -1;
  return ::open(proc_path(found.get()).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

std::vector<ModuleFile> open_module_files(const LookupRequest& request) {
  std::vector<std::string> directories = request.directories;
  directories.push_back(kSystemDebugDirectory);
  std::vector<std::string> roots = real_paths(request.roots);
  for (std::string& root : real_paths(directories)) roots.push_back(std::move(root));
  std::vector<ModuleFile> files;
  const auto consider = [&](const std::string& path, bool is_own_path) {
    if (files.size() == kMaxCandidates) return;
    const int fd = open_module_file(path, roots);
    if (fd >= 0) files.emplace_back(fd, path, is_own_path);
  };
  consider(request.module_path, true);
  if (request.build_id.empty()) return files;
  for (const std::string& directory : directories) {
    for (const std::string& path : build_id_paths(directory, request.build_id)) {
      consider(path, false);
    }
  }
  const std::string_view name = file_name(request.module_path);
  if (name.empty()) return files;
  for (const std::string& directory : request.directories) {
    for (const std::string& path : same_names(directory, name)) consider(path, false);
  }
  if (request.build_id.size() != kUuidBytes) return files;
  for (const std::string& directory : request.directories) {
    for (const std::string& path : dsym_files(directory)) consider(path, false);
  }
  return files;
}

}  // namespace collect::symbolize
