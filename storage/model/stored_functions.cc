#include "storage/model/stored_functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "formats/atf/headers.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

// Small blocks stay in the cache between the read and the look.
constexpr size_t kBlockBytes = 256 * 1024;

Status add_events_of(File& file, FunctionSet& functions, const std::atomic<bool>* stop) {
  std::vector<uint8_t> block(kBlockBytes);
  auto got = file.read_at(0, MutableBytes(block).first(atf::kHeaderBytes));
  if (!got.ok()) return got.error();
  const auto header = atf::decode_index_header(Bytes(block).first(*got));
  if (!header.ok()) return header.error();
  const uint64_t events = header.value().event_count;
  for (uint64_t event = 0; event < events;) {
    if (stop != nullptr && stop->load()) return Error{Code::kCancelled, "stopped"};
    const uint64_t count = std::min<uint64_t>(events - event, kBlockBytes / atf::kEventBytes);
    got = file.read_at(atf::kEventsOffset + event * atf::kEventBytes,
                       MutableBytes(block).first(count * atf::kEventBytes));
    if (!got.ok()) return got.error();
    const size_t whole = *got / atf::kEventBytes * atf::kEventBytes;
    functions.add_events(Bytes(block).first(whole));
    if (whole < count * atf::kEventBytes) break;  // shorter than its header says
    event += count;
  }
  return {};
}

}  // namespace

Result<FunctionSet> stored_functions(Fs& fs, const std::string& directory,
                                     const std::atomic<bool>* stop) {
  FunctionSet functions;
  auto names = fs.list_directory(directory);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    if (!parse_thread_directory(name)) continue;
    auto file = fs.open(fmt::format("{}/{}/{}", directory, name, kIndexFile), OpenMode::kRead);
    if (!file.ok()) continue;
    const Status added = add_events_of(**file, functions, stop);
    if (!added.ok() && added.code() == Code::kCancelled) return added.error();
  }
  return functions;
}

}  // namespace collect::storage
