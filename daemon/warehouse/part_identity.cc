#include "daemon/warehouse/part_identity.h"

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
  const uint64_t load = number_of(session + "\n" + part + "\n" + std::to_string(manifest_crc32c) +
                                  "\n" + std::to_string(kRowsVersion));
  return {std::move(session), std::move(part), load};
}

}  // namespace

std::string session_id(const storage::SessionIdentity& identity) {
  return hex_bytes(identity.process_id) + "-" + std::to_string(identity.recording);
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
  return identity_of(session_id(identity), collector + "/" + std::string(directory),
                     manifest_crc32c);
}

PartIdentity identify_committed(const upload::Commit& commit, uint32_t manifest_crc32c) {
  return identity_of(commit.process_id + "-" + std::to_string(commit.recording),
                     commit.part.collector + "-" + commit.part.epoch + "/" + commit.session,
                     manifest_crc32c);
}

PartIdentity identify_merged(const std::vector<PartIdentity>& parts) {
  std::vector<uint64_t> loads;
  for (const PartIdentity& part : parts) loads.push_back(part.load);
  std::ranges::sort(loads);
  std::string all;
  for (const uint64_t load : loads) all += std::to_string(load) + "\n";
  return {parts.front().session, kMergedPart, number_of("merged\n" + all)};
}

std::string build_of(const storage::ModuleInfo* module, uint32_t module_id,
                     std::string_view session) {
  if (module != nullptr && !module->build_id.empty()) return hex_bytes(module->build_id);
  return std::string(session) + "/" + std::to_string(module_id);
}

uint64_t first_function_of(std::string_view build) {
  return number_of(build);
}

}  // namespace collect::warehouse
