#include "storage/packed/pack_session.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "formats/core/crc32.h"
#include "storage/container/packed_lanes.h"
#include "storage/fs/whole_file.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/manifest_file.h"
#include "storage/model/session_files.h"
#include "storage/model/thread_leftovers.h"
#include "storage/packed/found_lanes.h"
#include "storage/packed/packed_container.h"

namespace collect::storage {
namespace {

constexpr size_t kStepBytes = size_t{4} << 20;

std::string thread_path(const std::string& directory, uint32_t thread) {
  return fmt::format("{}/{}", directory, thread_directory_name(thread));
}

std::string lane_path(const std::string& directory, const PackedLane& lane) {
  return thread_file_path(directory, lane.thread, lane.lane);
}

// Reports how much is done.
class Steps {
 public:
  Steps(const PackProgress& progress, uint64_t all) : progress_(progress), all_(all) {}
  Status done(uint64_t bytes) {
    done_ += bytes;
    return progress_ ? progress_(done_, all_) : Status();
  }

 private:
  const PackProgress& progress_;
  const uint64_t all_;
  uint64_t done_ = 0;
};

// The checksum of so many bytes, which `fill` brings step by step.
using FillStep = std::function<Status(uint64_t offset, MutableBytes step)>;
Result<uint32_t> checksum_in_steps(uint64_t bytes, const FillStep& fill, Steps& steps) {
  std::vector<uint8_t> buffer(std::min<uint64_t>(kStepBytes, bytes));
  uint32_t crc = 0;
  for (uint64_t offset = 0; offset < bytes;) {
    const MutableBytes step =
        MutableBytes(buffer).first(std::min<uint64_t>(buffer.size(), bytes - offset));
    COLLECT_TRY(fill(offset, step));
    crc = crc32c(step, crc);
    offset += step.size();
    COLLECT_TRY(steps.done(step.size()));
  }
  return crc;
}

// Reads the file twice at once: as it is, and as a reader of the packed session would.
Result<uint32_t> compare(Fs& fs, const std::string& path, const PackedLane& lane,
                         const ReadContainer& containers, Steps& steps) {
  const auto file = fs.open(path, OpenMode::kRead);
  if (!file.ok()) return file.error();
  std::vector<uint8_t> buffer(std::min<uint64_t>(kStepBytes, lane.file_bytes));
  const auto both = [&](uint64_t offset, MutableBytes there) -> Status {
    const auto got = (*file)->read_at(offset, there);
    if (!got.ok()) return got.error();
    const MutableBytes packed = MutableBytes(buffer).first(there.size());
    COLLECT_TRY(read_packed(lane, offset, packed, containers));
    const auto same = static_cast<size_t>(
        std::mismatch(there.begin(), there.begin() + *got, packed.begin()).first - there.begin());
    return same == there.size() ? Status() : differs_from_containers(path, offset + same);
  };
  return checksum_in_steps(lane.file_bytes, both, steps);
}

Result<Manifest> sealed_manifest(Fs& fs, const SessionPath& session_path) {
  auto manifest = read_manifest(fs, session_path.directory);
  if (!manifest.ok()) return manifest;
  if (manifest->state == SessionState::kRecording) {
    return Error{Code::kUnsupported, session_path.name + ": is not sealed"};
  }
  if (manifest->symbols_state == SymbolsState::kPending) {
    return Error{
        Code::kUnsupported,
        session_path.name + ": its functions have no names yet; collectctl symbolize first"};
  }
  return manifest;
}

// Compares all files that are there; those of a packed session that are gone were compared before.
Status prove(Fs& fs, const std::string& directory, std::vector<PackedLane>& lanes, Steps& steps) {
  const ReadContainer containers = containers_of(fs, directory);
  for (PackedLane& lane : lanes) {
    const std::string path = lane_path(directory, lane);
    if (!fs.exists(path)) continue;
    const auto crc = compare(fs, path, lane, containers, steps);
    if (!crc.ok()) return crc.error();
    lane.file_crc32c = *crc;
  }
  return {};
}

Status check_containers(Fs& fs, const std::string& directory,
                        const std::vector<PackedLane>& lanes) {
  for (const PackedLane& lane : lanes) {
    const std::string path = fmt::format("{}/{}", directory, container_name(lane.container));
    if (!fs.exists(path)) return Error{Code::kDamaged, path + ": is missing, and the events in it"};
  }
  return {};
}

// Bytes of all thread files that are there.
Result<uint64_t> bytes_of_files(Fs& fs, const std::string& directory, const Manifest& manifest) {
  uint64_t all = 0;
  for (const ManifestThread& thread : manifest.threads) {
    for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
      const std::string path = thread_file_path(directory, thread.id, lane);
      if (!fs.exists(path)) continue;
      const auto file = fs.open(path, OpenMode::kRead);
      if (!file.ok()) return file.error();
      const auto bytes = (*file)->size();
      if (!bytes.ok()) return bytes;
      all += *bytes;
    }
  }
  return all;
}

// Those that neither the manifest nor the table names.
Status remove_other_containers(Fs& fs, const std::string& directory, const Manifest& manifest,
                               const PackedLanes& packed) {
  const auto names = fs.list_directory(directory);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    const auto number = parse_container_name(name);
    const bool is_named =
        std::ranges::any_of(manifest.containers,
                            [&](const Container& one) { return one.name == name; }) ||
        std::ranges::any_of(packed.lanes(),
                            [&](const PackedLane& lane) { return lane.container == number; });
    if (number && !is_named) COLLECT_TRY(fs.remove_file(fmt::format("{}/{}", directory, name)));
  }
  return {};
}

uint64_t packed_bytes(Fs& fs, const SessionPath& session_path) {
  uint64_t bytes = 0;
  const auto files = list_session_files(fs, session_path);
  if (!files.ok()) return bytes;
  for (const SessionFileInfo& file : *files) {
    const bool is_packed = file.path == kPackedLanesFile || parse_container_name(file.path);
    bytes += is_packed ? file.bytes : 0;
  }
  return bytes;
}

// The thread files of the table that are still there; then their directories, where they are empty.
Status remove_files(Fs& fs, const std::string& directory, const PackedLanes& lanes,
                    PackReport& report) {
  for (const PackedLane& lane : lanes.lanes()) {
    const std::string path = lane_path(directory, lane);
    if (!fs.exists(path)) continue;
    COLLECT_TRY(fs.remove_file(path));
    ++report.files;
    report.file_bytes += lane.file_bytes;
  }
  for (const PackedLane& lane : lanes.lanes()) {
    const std::string thread = thread_path(directory, lane.thread);
    const auto left = fs.list_directory(thread);
    if (left.ok() && left->empty()) COLLECT_TRY(fs.remove_directory(thread));
  }
  return fs.sync_directory(directory);
}

// That an earlier unpack_session() made.
Status check_file(Fs& fs, const std::string& path, const PackedLane& lane, Steps& steps) {
  const auto file = fs.open(path, OpenMode::kRead);
  if (!file.ok()) return file.error();
  const auto bytes = (*file)->size();
  if (!bytes.ok()) return bytes.error();
  const Error is_other{Code::kDamaged,
                       path + ": not the file that was packed; without it, it is made again"};
  const auto crc = checksum_in_steps(
      *bytes,
      [&](uint64_t offset, MutableBytes step) -> Status {
        const auto got = (*file)->read_at(offset, step);
        if (!got.ok()) return got.error();
        return *got == step.size() ? Status() : is_other;
      },
      steps);
  if (!crc.ok()) return crc.error();
  return *bytes == lane.file_bytes && *crc == lane.file_crc32c ? Status() : is_other;
}

Status write_file(Fs& fs, const std::string& directory, const PackedLane& lane,
                  const ReadContainer& containers, Steps& steps) {
  const std::string thread = thread_path(directory, lane.thread);
  const Status made = fs.make_directory(thread);
  if (!made.ok() && made.code() != Code::kAlreadyExists) return made;
  const std::string temporary = fmt::format(
      "{}/{}", thread, lane.lane == Lane::kIndex ? kIndexTemporaryFile : kDetailTemporaryFile);
  if (fs.exists(temporary)) COLLECT_TRY(fs.remove_file(temporary));  // of an interrupted one
  auto file = fs.open(temporary, OpenMode::kCreate);
  if (!file.ok()) return file.error();
  const auto crc = checksum_in_steps(
      lane.file_bytes,
      [&](uint64_t offset, MutableBytes step) -> Status {
        COLLECT_TRY(read_packed(lane, offset, step, containers));
        const Bytes part = step;
        return (*file)->write_at(offset, {&part, 1});
      },
      steps);
  Status written = crc.ok() ? Status() : Status(crc.error());
  if (written.ok() && *crc != lane.file_crc32c) {
    written = Error{Code::kDamaged, lane_path(directory, lane) +
                                        ": what the containers have does not have its checksum"};
  }
  if (written.ok()) written = (*file)->sync();
  if (written.ok()) written = fs.rename(temporary, lane_path(directory, lane));
  if (written.ok()) return fs.sync_directory(thread);
  (void)fs.remove_file(temporary);
  (void)fs.remove_directory(thread);  // unless something else is in it
  return written;
}

// And reads it again: from now on the files depend on it.
Status write_table(Fs& fs, const std::string& directory, const PackedLanes& packed) {
  const std::string table = packed.encode();
  COLLECT_TRY(
      write_whole_file(fs, directory, kPackedLanesFile, kPackedLanesTemporaryFile, table, true));
  const auto written = read_packed_lanes(fs, directory);
  if (written.ok() && *written && (*written)->encode() == table) return {};
  (void)fs.remove_file(fmt::format("{}/{}", directory, kPackedLanesFile));
  return written.ok() ? Error{Code::kDamaged, fmt::format("{}/{}: was not read as it was written",
                                                          directory, kPackedLanesFile)}
                      : written.error();
}

}  // namespace

Result<PackReport> pack_session(Fs& fs, const SessionPath& session_path,
                                const PackProgress& progress) {
  const std::string& directory = session_path.directory;
  auto manifest = sealed_manifest(fs, session_path);
  if (!manifest.ok()) return manifest.error();
  const auto table = read_packed_lanes(fs, directory);
  if (!table.ok()) return table.error();
  PackReport report;
  report.events = manifest->totals.events;
  const auto bytes = bytes_of_files(fs, directory, *manifest);
  if (!bytes.ok()) return bytes.error();
  if (!*table && manifest->threads.size() != manifest->totals.threads) {
    return Error{Code::kUnsupported,
                 session_path.name + ": the manifest does not list all threads"};
  }
  Steps steps(progress, 2 * *bytes);  // written, and compared
  std::vector<PackedLane> lanes;
  if (*table) {  // interrupted: some of the files may still be there
    lanes = (*table)->lanes();
    COLLECT_TRY(check_containers(fs, directory, lanes));
    COLLECT_TRY(prove(fs, directory, lanes, steps));
  } else {
    const auto container = write_packed_container(
        fs, session_path, *manifest, [&steps](uint64_t more) { return steps.done(more); });
    if (!container.ok()) return container.error();
    auto found = find_lanes(fs, directory, *manifest, *container);
    const Status proven = found.ok() ? prove(fs, directory, *found, steps) : Status(found.error());
    if (!proven.ok()) {
      (void)fs.remove_file(fmt::format("{}/{}", directory, container_name(*container)));
      return proven.error();
    }
    lanes = std::move(*found);
    if (lanes.empty()) {
      (void)fs.remove_file(fmt::format("{}/{}", directory, container_name(*container)));
      return Error{Code::kUnsupported, session_path.name + ": it has no thread files"};
    }
    COLLECT_TRY(write_manifest(fs, directory, *manifest, true));
  }
  const PackedLanes packed(std::move(lanes));
  if (!*table) {
    COLLECT_TRY(write_table(fs, directory, packed));
  }
  COLLECT_TRY(remove_files(fs, directory, packed, report));
  COLLECT_TRY(remove_other_containers(fs, directory, *manifest, packed));
  report.packed_bytes = packed_bytes(fs, session_path);
  return report;
}

Result<PackReport> unpack_session(Fs& fs, const SessionPath& session_path,
                                  const PackProgress& progress) {
  const std::string& directory = session_path.directory;
  const auto manifest = sealed_manifest(fs, session_path);
  if (!manifest.ok()) return manifest.error();
  const auto table = read_packed_lanes(fs, directory);
  if (!table.ok()) return table.error();
  PackReport report;
  report.events = manifest->totals.events;
  if (!*table) return report;
  report.packed_bytes = packed_bytes(fs, session_path);
  uint64_t all = 0;
  for (const PackedLane& lane : (*table)->lanes()) all += lane.file_bytes;
  Steps steps(progress, all);
  const ReadContainer containers = containers_of(fs, directory);
  for (const PackedLane& lane : (*table)->lanes()) {
    const std::string path = lane_path(directory, lane);
    if (fs.exists(path)) {
      COLLECT_TRY(check_file(fs, path, lane, steps));
      continue;
    }
    COLLECT_TRY(write_file(fs, directory, lane, containers, steps));
    ++report.files;
    report.file_bytes += lane.file_bytes;
  }
  COLLECT_TRY(fs.sync_directory(directory));
  COLLECT_TRY(fs.remove_file(fmt::format("{}/{}", directory, kPackedLanesFile)));
  COLLECT_TRY(fs.sync_directory(directory));
  return report;
}

}  // namespace collect::storage
