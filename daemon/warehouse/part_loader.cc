#include "daemon/warehouse/part_loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "formats/core/crc32.h"
#include "storage/export/capture_walk.h"
#include "storage/read/session_files.h"
#include "storage/select/recordings.h"

namespace collect::warehouse {
namespace {

EventRows event_rows_of(std::string_view name) {
  for (const EventRows rows : {EventRows::kLoad, EventRows::kReference}) {
    if (name == event_rows_name(rows)) return rows;
  }
  return EventRows::kNone;
}

// "session_…/pid_…" of a path.
std::string directory_name(const std::string& path) {
  const size_t pid = path.rfind('/');
  const size_t session = pid == std::string::npos || pid == 0 ? pid : path.rfind('/', pid - 1);
  return session == std::string::npos ? path : path.substr(session + 1);
}

}  // namespace

Result<PartIdentity> identify(const storage::SessionPart& part) {
  const auto json = storage::read_manifest_json(*part.fs, part.directory);
  if (!json.ok()) return json.error();
  return identify_part(part.manifest.identity, directory_name(part.directory),
                       crc32c(Bytes(reinterpret_cast<const uint8_t*>(json->data()), json->size())));
}

Result<KnownParts> PartLoader::known(const std::string& session) {
  const auto rows = client_.ask(
      "SELECT part, load, event_rows, arrayStringConcat(covers, '\n') FROM parts FINAL WHERE "
      "session = " +
      sql_text(session));
  if (!rows.ok()) return rows.error();
  KnownParts parts;
  for (const std::vector<std::string>& row : *rows) {
    if (row.size() != 4)
      return Error{Code::kDamaged, "the server's answer about parts is not valid"};
    parts.parts[row[0]] = {std::strtoull(row[1].c_str(), nullptr, 10), event_rows_of(row[2])};
    std::istringstream covers(row[3]);
    for (std::string name; std::getline(covers, name);) parts.covered.insert(name);
  }
  return parts;
}

bool PartLoader::has(const KnownParts& known, const PartIdentity& part) const {
  const auto found = known.parts.find(part.part);
  return !settings_.again && found != known.parts.end() && found->second.load == part.load &&
         found->second.event_rows >= settings_.events;
}

bool PartLoader::has_all(const KnownParts& known, const std::vector<PartIdentity>& parts) const {
  if (!std::ranges::all_of(parts, [&](const auto& part) { return has(known, part); })) return false;
  if (parts.size() == 1) return true;
  const auto merged = known.parts.find(kMergedPart);
  return merged != known.parts.end() && merged->second.load == identify_merged(parts).load;
}

Status PartLoader::send(const std::string& directory, PartRows& rows, bool with_events) {
  const auto trace = read::open_trace(directory);
  if (!trace.ok()) return trace.error();
  auto session = exports::ExportedSession::open(*trace, {});
  if (!session.ok()) return session.error();
  exports::ExportedSessions sessions;
  sessions.push_back(std::move(*session));
  const convert::ConvertLog log;
  return exports::CaptureWalk(
             rows, with_events ? exports::WalkedRows::kAll : exports::WalkedRows::kWithoutEvents,
             log)
      .run(sessions);
}

Result<LoadedPart> PartLoader::failed(LoadedPart part, const Error& error) const {
  if (client_.last_failed()) return error;
  part.outcome = LoadOutcome::kFailed;
  part.problem = error.message;
  return part;
}

Result<LoadedPart> PartLoader::load_one(const KnownParts& known, const PartLocation& from) {
  LoadedPart part{.place = from.place};
  const auto identity = identify(from.part);
  if (!identity.ok()) return failed(std::move(part), identity.error());
  part.identity = *identity;
  if (has(known, *identity)) {
    part.outcome = LoadOutcome::kPresent;
    return part;
  }
  if (from.part.manifest.state == storage::SessionState::kRecording) {
    return failed(std::move(part), {Code::kUnavailable, "is not sealed: load it when it is"});
  }
  // Events that an earlier state of the part brought are the same ones.
  const auto before = known.parts.find(identity->part);
  const EventRows there =
      before == known.parts.end() ? EventRows::kNone : before->second.event_rows;
  PartRows rows(client_, *identity, {}, from.place, std::max(there, settings_.events));
  const bool with_events =
      settings_.events == EventRows::kLoad && (settings_.again || there != EventRows::kLoad);
  const Status sent = send(from.part.directory, rows, with_events);
  if (!sent.ok()) return failed(std::move(part), sent.error());
  part.counts = rows.counts();
  return part;
}

Result<LoadedPart> PartLoader::load_merged(const KnownParts& known,
                                           const std::vector<PartLocation>& parts,
                                           const std::vector<PartIdentity>& identities) {
  LoadedPart merged{.identity = identify_merged(identities), .place = "merged"};
  const auto there = known.parts.find(kMergedPart);
  if (!settings_.again && there != known.parts.end() &&
      there->second.load == merged.identity.load) {
    merged.outcome = LoadOutcome::kPresent;
    return merged;
  }
  std::vector<storage::SessionPart> sessions;
  std::vector<std::string> covers;
  for (const PartLocation& part : parts) sessions.push_back(part.part);
  for (const PartIdentity& part : identities) covers.push_back(part.part);
  const auto made = select::merge_recording(std::move(sessions), settings_.scratch,
                                            [](uint64_t, uint64_t) { return Status(); });
  if (!made.ok()) return failed(std::move(merged), made.error());
  PartRows rows(client_, merged.identity, std::move(covers), "merged", EventRows::kNone);
  const Status sent = send(made->directory, rows, false);
  if (!sent.ok()) return failed(std::move(merged), sent.error());
  merged.counts = rows.counts();
  return merged;
}

std::string PartLoader::unmerged(const KnownParts& known, const std::vector<PartIdentity>& here) {
  std::string elsewhere;
  bool is_covered = true;
  for (const PartIdentity& part : here) {
    is_covered = is_covered && known.covered.contains(part.part);
  }
  for (const auto& [name, part] : known.parts) {
    const bool is_here =
        std::ranges::any_of(here, [&](const PartIdentity& one) { return one.part == name; });
    if (is_here || name == kMergedPart) continue;
    is_covered = is_covered && known.covered.contains(name);
    elsewhere += (elsewhere.empty() ? "" : ", ") + name;
  }
  if (elsewhere.empty() || is_covered) return {};
  return fmt::format(
      "of this session the server has {} too: calls that both have count twice until all parts are "
      "loaded together",
      elsewhere);
}

Result<std::vector<LoadedPart>> PartLoader::load(std::vector<PartLocation> parts) {
  const auto before = known(session_id(parts.front().part.manifest.identity));
  if (!before.ok()) return before.error();
  std::vector<LoadedPart> loaded;
  std::vector<PartIdentity> here;
  for (const PartLocation& part : parts) {
    auto one = load_one(*before, part);
    if (!one.ok()) return one.error();
    if (one->outcome != LoadOutcome::kFailed) here.push_back(one->identity);
    loaded.push_back(std::move(*one));
  }
  const bool is_alone = std::ranges::all_of(before->parts, [&](const auto& known_part) {
    return known_part.first == kMergedPart ||
           std::ranges::any_of(
               here, [&](const PartIdentity& one) { return one.part == known_part.first; });
  });
  if (!is_alone) loaded.back().remark = unmerged(*before, here);
  if (!is_alone || here.size() != parts.size() || parts.size() == 1) return loaded;
  auto merged = load_merged(*before, parts, here);
  if (!merged.ok()) return merged.error();
  loaded.push_back(std::move(*merged));
  return loaded;
}

}  // namespace collect::warehouse
