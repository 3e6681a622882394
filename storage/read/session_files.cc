#include "storage/read/session_files.h"
#include "storage/manifest/manifest.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "storage/container/packed_lanes.h"
#include "storage/model/session_layout.h"
#include "storage/read/session_search.h"

namespace collect::read {
namespace {

namespace fs = std::filesystem;
using storage::RootedDirectory;

std::optional<uint32_t> thread_number(const fs::path& directory) {
  return number_after(directory.filename().string(), "thread_");
}

// A block that is made at once is a page of the container: none is decoded twice.
static_assert(kDemandBlockBytes == storage::kPackedPageBytes);
static_assert(atf::kBroughtBytes == storage::kPackedPageBytes);

// A packed session: where its thread files are in its containers, which are mapped. Any thread.
struct Packed {
  storage::PackedLanes lanes;
  std::map<uint32_t, FileBytes> containers;  // by number

  Result<Bytes> read(uint32_t container, uint64_t offset, size_t bytes) const {
    const auto found = containers.find(container);
    if (found == containers.end()) return Error{Code::kNotFound, "the container is gone"};
    const Bytes all = found->second.bytes();
    const Bytes behind = all.subspan(std::min<uint64_t>(offset, all.size()));
    return behind.first(std::min(bytes, behind.size()));
  }

  // kNotFound: the session has no such file.
  static Result<FileBytes> open(const std::shared_ptr<const Packed>& packed, uint32_t thread,
                                Lane lane) {
    const storage::PackedLane* const found = packed ? packed->lanes.find(thread, lane) : nullptr;
    if (found == nullptr) return Error{Code::kNotFound, "no such file"};
    const auto fill = [packed, found](uint64_t offset, MutableBytes out) {
      const auto read = [&](uint32_t container, uint64_t at, size_t bytes, std::vector<uint8_t>&) {
        return packed->read(container, at, bytes);
      };
      const Status filled = storage::read_packed(*found, offset, out, read);
      // Zeros are no records, so that their reader says where the damage is.
      if (!filled.ok()) std::ranges::fill(out, uint8_t{0});
    };
    return FileBytes::made(found->file_bytes, fill);
  }
};

// Null: it is not packed.
Result<std::shared_ptr<const Packed>> open_packed(const RootedDirectory& root,
                                                  const std::string& below,
                                                  const std::vector<std::string>& names) {
  if (!std::ranges::binary_search(names, storage::kPackedLanesFile)) {
    return std::shared_ptr<const Packed>();
  }
  const auto table = FileBytes::open(root, joined(below, storage::kPackedLanesFile));
  if (!table.ok()) return table.error();
  auto lanes = storage::PackedLanes::decode(table->bytes());
  if (!lanes.ok()) {
    return Error{lanes.code(),
                 fmt::format("{}: {}", root.path_of(joined(below, storage::kPackedLanesFile)),
                             lanes.error().message)};
  }
  auto packed = std::make_shared<Packed>();
  packed->lanes = std::move(*lanes);
  for (const std::string& name : names) {
    const auto number = storage::parse_container_name(name);
    if (!number) continue;
    auto file = FileBytes::open(root, joined(below, name));
    if (!file.ok()) return file.error();
    packed->containers.emplace(*number, std::move(*file));
  }
  return std::shared_ptr<const Packed>(std::move(packed));
}

// A file of a thread: itself, or as the containers have it.
Result<FileBytes> open_lane(const RootedDirectory& root, const std::string& path,
                            const std::shared_ptr<const Packed>& packed, uint32_t n, Lane lane) {
  auto file = FileBytes::open(root, path);
  if (file.ok() || file.code() != Code::kNotFound) return file;
  auto made = Packed::open(packed, n, lane);
  return made.ok() || made.code() != Code::kNotFound ? std::move(made) : std::move(file);
}

TraceThread open_thread(uint32_t n, const RootedDirectory& root, const std::string& below,
                        const std::shared_ptr<const Packed>& packed = nullptr) {
  TraceThread thread;
  thread.n = n;
  const std::string index = joined(below, "index.atf");
  const std::string detail = joined(below, "detail.atf");
  thread.index_path = root.path_of(index);
  thread.detail_path = root.path_of(detail);
  auto index_bytes = open_lane(root, index, packed, n, Lane::kIndex);
  if (index_bytes) {
    thread.index = std::move(index_bytes).value();
  } else {
    thread.error = index_bytes.error();
  }
  auto detail_bytes = open_lane(root, detail, packed, n, Lane::kDetail);
  if (detail_bytes) {
    thread.detail = std::move(detail_bytes).value();
  } else if (detail_bytes.code() != Code::kNotFound && !thread.error) {
    thread.error = detail_bytes.error();
  }
  // It only saves time: without it everything is read from the events.
  auto lod_bytes = FileBytes::open(root, joined(below, storage::kLodFile));
  if (lod_bytes) thread.lod = std::move(lod_bytes).value();
  return thread;
}

void read_manifest(Trace& trace, const RootedDirectory& root, const std::string& below) {
  const std::string name = joined(below, "manifest.json");
  trace.manifest_path = root.path_of(name);
  auto file = FileBytes::open(root, name);
  if (!file) {
    trace.manifest_error = file.error();
  } else if (file->bytes().size() > storage::kMaxManifestBytes) {
    trace.manifest_error = Error{
        Code::kLimit,
        fmt::format("{}: larger than {} bytes", trace.manifest_path, storage::kMaxManifestBytes)};
  } else {
    const Bytes bytes = file->bytes();
    trace.manifest.emplace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  auto switches = FileBytes::open(root, joined(below, storage::kSwitchesFile));
  if (switches) {
    trace.switches = std::move(switches).value();
  } else {
    trace.switches_error = switches.error();
  }
}

// The manifest of a session that is known by one of its parts.
void read_manifest_of(Trace& trace, const fs::path& session) {
  const auto directory = RootedDirectory::open(session.string());
  if (directory) {
    read_manifest(trace, *directory, "");
  } else {
    trace.manifest_path = (session / "manifest.json").string();
    trace.manifest_error = directory.error();
  }
}

bool is_there(const RootedDirectory& root, const std::string& below) {
  return root.look_at(below).ok();
}

bool is_thread_directory(const RootedDirectory& root) {
  return is_there(root, "index.atf") || is_there(root, "detail.atf");
}

Result<Trace> open_session(const RootedDirectory& root, const std::string& below,
                           const std::vector<std::string>& names, std::string choice) {
  Trace trace;
  trace.kind = TraceKind::kSession;
  trace.path = root.path_of(below);
  trace.choice = std::move(choice);
  std::map<uint32_t, std::string> found;
  for (const std::string& name : names) {
    if (const auto n = number_after(name, "thread_")) found.emplace(*n, joined(below, name));
  }
  auto packed = open_packed(root, below, names);
  if (!packed.ok()) {
    trace.packed_error = packed.error();
  } else if (*packed) {
    for (const storage::PackedLane& lane : (*packed)->lanes.lanes()) {
      found.emplace(lane.thread, joined(below, storage::thread_directory_name(lane.thread)));
    }
  }
  for (const auto& [n, thread] : found) {
    trace.threads.push_back(open_thread(n, root, thread, packed.ok() ? *packed : nullptr));
  }
  const bool has_files = std::ranges::any_of(trace.threads, [](const TraceThread& thread) {
    return !thread.error || thread.error->code != Code::kNotFound;
  });
  if (!packed.ok() && !has_files) return packed.error();
  read_manifest(trace, root, below);
  return trace;
}

// thread_N of a packed session, or a file in it, which no directory has. kNotFound: `place` is
// none.
Result<Trace> open_packed_thread(const fs::path& place) {
  const std::string leaf = place.filename().string();
  const bool is_file = leaf == storage::kIndexFile || leaf == storage::kDetailFile;
  const fs::path directory = is_file ? place.parent_path() : place;
  const Error none{Code::kNotFound, place.string() + ": no thread of a packed session"};
  const auto n = thread_number(directory);
  if (!n) return none;
  const auto session = RootedDirectory::open(directory.parent_path().string());
  if (!session.ok()) return none;
  const auto names = session->list("");
  if (!names.ok()) return none;
  const auto packed = open_packed(*session, "", *names);
  if (!packed.ok()) return packed.error();
  const Lane lane = leaf == storage::kDetailFile ? Lane::kDetail : Lane::kIndex;
  if (!*packed || (*packed)->lanes.find(*n, lane) == nullptr) return none;
  Trace trace;
  trace.path = place.string();
  trace.threads.push_back(open_thread(*n, *session, directory.filename().string(), *packed));
  trace.kind = !is_file               ? TraceKind::kThread
               : lane == Lane::kIndex ? TraceKind::kIndexFile
                                      : TraceKind::kDetailFile;
  if (trace.kind == TraceKind::kDetailFile) trace.threads.front().index = {};
  read_manifest(trace, *session, "");
  return trace;
}

Result<Trace> open_newest_below(const RootedDirectory& root) {
  const std::vector<FoundSession> found = find_sessions(root);
  if (found.empty()) return Error{Code::kNotFound, root.path() + ": no session in it"};
  const FoundSession& newest = newest_with_events(root, found);
  std::string which = found.size() == 1 ? "the only session"
                                        : fmt::format("the newest of {} sessions", found.size());
  if (&newest != &found.front()) which += " that has events";
  const auto names = root.list(newest.below);
  if (!names.ok()) return names.error();
  return open_session(
      root, newest.below, *names,
      fmt::format("{} is {} in {}", root.path_of(newest.below), which, root.path()));
}

bool begins_with(Bytes content, const uint8_t (&magic)[4]) {
  return content.size() >= 4 && std::equal(std::begin(magic), std::end(magic), content.begin());
}

Result<Trace> open_file(const fs::path& file) {
  Trace trace;
  trace.path = file.string();
  auto bytes = FileBytes::open(trace.path);
  if (!bytes) return bytes.error();
  const Bytes content = bytes->bytes();
  const fs::path directory = file.parent_path();
  TraceThread thread;
  thread.n = thread_number(fs::absolute(file).parent_path()).value_or(0);
  if (begins_with(content, atf::kDetailMagic)) {
    trace.kind = TraceKind::kDetailFile;
    thread.detail_path = trace.path;
    thread.detail = std::move(bytes).value();
    thread.index_path = (directory / "index.atf").string();
  } else {
    trace.kind =
        begins_with(content, atf::kIndexMagic) ? TraceKind::kIndexFile : TraceKind::kUnknownFile;
    thread.index_path = trace.path;
    thread.index = std::move(bytes).value();
    thread.detail_path = (directory / "detail.atf").string();
    const auto here = RootedDirectory::open(directory.empty() ? "." : directory.string());
    auto beside = here ? FileBytes::open(*here, "detail.atf") : Result<FileBytes>(here.error());
    if (beside) {
      thread.detail = std::move(beside).value();
    } else if (trace.kind == TraceKind::kIndexFile && beside.code() != Code::kNotFound) {
      thread.error = beside.error();
    }
  }
  trace.threads.push_back(std::move(thread));
  read_manifest_of(trace, fs::absolute(file).parent_path().parent_path());
  return trace;
}

}  // namespace

const TraceThread* Trace::thread(uint32_t n) const {
  const auto found =
      std::lower_bound(threads.begin(), threads.end(), n,
                       [](const TraceThread& each, uint32_t wanted) { return each.n < wanted; });
  return found != threads.end() && found->n == n ? &*found : nullptr;
}

std::vector<std::string> Trace::unopened() const {
  std::vector<std::string> sentences;
  const auto add = [&](const std::optional<Error>& error) {
    if (error && error->code != Code::kNotFound) sentences.push_back(to_string(*error));
  };
  const auto add_cut = [&](const FileBytes& file) {
    if (!file.missing().empty()) sentences.push_back(file.missing());
  };
  for (const TraceThread& thread : threads) {
    add(thread.error);
    add_cut(thread.index);
    if (thread.detail) add_cut(*thread.detail);
  }
  add(packed_error);
  add(manifest_error);
  return sentences;
}

std::vector<atf::ThreadFiles> Trace::files(const std::vector<uint32_t>& only) const {
  const std::set<uint32_t> wanted(only.begin(), only.end());
  std::vector<atf::ThreadFiles> files;
  for (const TraceThread& thread : threads) {
    if (!wanted.empty() && !wanted.contains(thread.n)) continue;
    atf::ThreadFiles file{thread.n, thread.index.bytes(), {}, thread.index.fill()};
    if (thread.detail) file.detail = thread.detail->bytes();
    files.push_back(file);
  }
  return files;
}

Result<Trace> open_trace(const std::string& path) {
  // Without a trailing slash, so that filename() is the directory's own name.
  fs::path place = fs::path(path).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    Error failure = errno_error(errno, path);
    if (failure.code != Code::kNotFound) return failure;
    auto packed = open_packed_thread(fs::absolute(place));
    return packed.ok() || packed.code() != Code::kNotFound ? std::move(packed) : failure;
  }
  if (!S_ISDIR(status.st_mode)) return open_file(place);
  if (place == ".") place = fs::current_path();
  const auto root = RootedDirectory::open(place.string());
  if (!root.ok()) return root.error();
  const auto names = root->list("");
  if (!names.ok()) return names.error();
  if (is_thread_directory(*root)) {
    Trace trace;
    trace.kind = TraceKind::kThread;
    trace.path = place.string();
    trace.threads.push_back(open_thread(thread_number(place).value_or(0), *root, ""));
    read_manifest_of(trace, fs::absolute(place).parent_path());
    return trace;
  }
  if (is_session_directory(*root, "", place.filename().string(), *names)) {
    return open_session(*root, "", *names, "");
  }
  auto packed = open_packed_thread(fs::absolute(place));  // index.lod is all that is in it
  if (packed.ok() || packed.code() != Code::kNotFound) return packed;
  return open_newest_below(*root);
}

}  // namespace collect::read
