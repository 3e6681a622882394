// Any bytes as what comes from a bucket and from files of credentials: an answer's XML, a COMMIT, a
// profile, a report of collect-store; values within their limits or an error. What was read as a
// COMMIT is written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/upload/commit.h"
#include "daemon/upload/s3/credential_file.h"
#include "daemon/upload/s3/digests.h"
#include "daemon/upload/s3/s3_failure.h"
#include "daemon/upload/s3/s3_xml.h"
#include "daemon/upload/s3/uri.h"
#include "daemon/upload/s3/web_identity.h"
#include "daemon/upload/upload_status.h"

namespace {

size_t depth_of(const collect::upload::XmlElement& element) {
  size_t deepest = 0;
  for (const auto& child : element.children) deepest = std::max(deepest, depth_of(child));
  return deepest + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect::upload;
  const std::string_view text = text_of({data, size});
  const auto xml = read_xml(text);
  if (xml.ok() && depth_of(*xml) > kMaxXmlDepth) std::abort();
  (void)code_of(200, read_failure(text).code);
  const auto commit = commit_from_json(text);
  if (commit.ok()) {
    const auto again = commit_from_json(commit_to_json(*commit));
    if (!again.ok() || !(*again == *commit)) std::abort();
  }
  const auto keys = credentials_of_profile(text, "default", "file");
  if (keys.ok() && (keys->access_key_id.empty() || keys->secret_access_key.empty())) std::abort();
  const auto decoded = decode_uri(text);
  if (decoded && decode_uri(encode_uri(*decoded)) != decoded) std::abort();
  (void)parse_utc(text);
  const auto report = StoreReport::parse(text);
  if (report.ok() && !StoreReport::parse(report->to_line()).ok()) std::abort();
  return 0;
}
