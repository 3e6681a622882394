#include "daemon/warehouse/part_identity.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/upload/s3/digests.h"
#include "formats/core/bytes.h"
#include "formats/core/text/hex.h"
#include "storage/model/collector_identity.h"
#include "storage/model/session_layout.h"

namespace collect::warehouse {
namespace {

uint64_t number_of(std::string_view text) {
  return load_le<uint64_t>(upload::sha256(upload::bytes_of(text)).data());
}

PartIdentity identity_of(std::string session, std::string part, uint32_t manifest_crc32c) {
  const uint64_t load =
      number_of(fmt::format("{}\n{}\n{}\n{}", session, part, manifest_crc32c, kRowsVersion));
  return {std::move(session), std::move(part), load};
}

}  // namespace

std::string session_id(const storage::SessionIdentity& identity) {
  return fmt::format("{}-{}", hex_bytes(identity.process_id), identity.recording);
}

Result<PartIdentity> identify_part(const storage::SessionIdentity& identity,
                                   std::string_view directory, uint32_t manifest_crc32c) {
  if (identity.process_id == decltype(identity.process_id){}) {
    return Error{Code::kUnsupported, std::string(directory) +
                                         ": its manifest does not say which process it is of, so "
                                         "it cannot be distinguished from others"};
  }
  const auto name = storage::parse_session_name(directory.substr(0, directory.find('/')));
  if (name && !name->is_recorded()) {
    return Error{Code::kUnsupported,
                 std::string(directory) + ": was made of another session: load that one"};
  }
  const std::string collector =
      identity.collector.is_known() ? storage::collector_name(identity.collector) : "local";
  return identity_of(session_id(identity), fmt::format("{}/{}", collector, directory),
                     manifest_crc32c);
}

PartIdentity identify_committed(const upload::Commit& commit, uint32_t manifest_crc32c) {
  return identity_of(
      fmt::format("{}-{}", commit.process_id, commit.recording),
      fmt::format("{}-{}/{}", commit.part.collector, commit.part.epoch, commit.session),
      manifest_crc32c);
}

PartIdentity identify_merged(const std::vector<PartIdentity>& parts) {
  std::vector<uint64_t> loads;
  for (const PartIdentity& part : parts) loads.push_back(part.load);
  std::ranges::sort(loads);
  std::string all;
  for (const uint64_t load : loads) all += fmt::format("{}\n", load);
  return {parts.front().session, kMergedPart, number_of("merged\n" + all)};
}

std::string build_of(const storage::ModuleInfo* module, uint32_t module_id,
                     std::string_view session) {
  if (module != nullptr && !module->build_id.empty()) return hex_bytes(module->build_id);
  return fmt::format("{}/{}", session, module_id);
}

uint64_t first_function_of(std::string_view build) {
  return number_of(build);
}

}  // namespace collect::warehouse
