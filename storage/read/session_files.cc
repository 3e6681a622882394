#include "storage/read/session_files.h"
#include "storage/manifest/manifest.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

#include "storage/model/session_layout.h"
#include "storage/read/session_search.h"

namespace collect::read {
namespace {

namespace fs = std::filesystem;
using storage::RootedDirectory;

std::optional<uint32_t> thread_number(const fs::path& directory) {
  return number_after(directory.filename().string(), "thread_");
}

TraceThread open_thread(uint32_t n, const RootedDirectory& root, const std::string& below) {
  TraceThread thread;
  thread.n = n;
  const std::string index = joined(below, "index.atf");
  const std::string detail = joined(below, "detail.atf");
  thread.index_path = root.path_of(index);
  thread.detail_path = root.path_of(detail);
  auto index_bytes = FileBytes::open(root, index);
  if (index_bytes) {
    thread.index = std::move(index_bytes).value();
  } else {
    thread.error = index_bytes.error();
  }
  auto detail_bytes = FileBytes::open(root, detail);
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
    trace.manifest_error =
        Error{Code::kLimit, trace.manifest_path + ": larger than " +
                                std::to_string(storage::kMaxManifestBytes) + " bytes"};
  } else {
    const Bytes bytes = file->bytes();
    trace.manifest.emplace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
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

Trace open_session(const RootedDirectory& root, const std::string& below,
                   const std::vector<std::string>& names, std::string choice) {
  Trace trace;
  trace.kind = TraceKind::kSession;
  trace.path = root.path_of(below);
  trace.choice = std::move(choice);
  std::vector<std::pair<uint32_t, std::string>> found;
  for (const std::string& name : names) {
    if (const auto n = number_after(name, "thread_")) found.emplace_back(*n, joined(below, name));
  }
  std::sort(found.begin(), found.end());
  for (const auto& [n, thread] : found) trace.threads.push_back(open_thread(n, root, thread));
  read_manifest(trace, root, below);
  return trace;
}

Result<Trace> open_newest_below(const RootedDirectory& root) {
  const std::vector<FoundSession> found = find_sessions(root);
  if (found.empty()) return Error{Code::kNotFound, root.path() + ": no session in it"};
  const FoundSession& newest = newest_with_events(root, found);
  std::string which = found.size() == 1
                          ? "the only session"
                          : "the newest of " + std::to_string(found.size()) + " sessions";
  if (&newest != &found.front()) which += " that has events";
  const auto names = root.list(newest.below);
  if (!names.ok()) return names.error();
  return open_session(root, newest.below, *names,
                      root.path_of(newest.below) + " is " + which + " in " + root.path());
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
  add(manifest_error);
  return sentences;
}

std::vector<atf::ThreadFiles> Trace::files(const std::vector<uint32_t>& only) const {
  const std::set<uint32_t> wanted(only.begin(), only.end());
  std::vector<atf::ThreadFiles> files;
  for (const TraceThread& thread : threads) {
    if (!wanted.empty() && !wanted.contains(thread.n)) continue;
    atf::ThreadFiles file{thread.n, thread.index.bytes(), {}};
    if (thread.detail) file.detail = thread.detail->bytes();
    files.push_back(file);
  }
  return files;
}

Result<Trace> open_trace(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return errno_error(errno, path);
  // Without a trailing slash, so that filename() is the directory's own name.
  fs::path place = fs::path(path).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
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
  return open_newest_below(*root);
}

}  // namespace collect::read
