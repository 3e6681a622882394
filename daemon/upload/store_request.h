// What collectctl and collectord ask collect-store for: its arguments, each NAME=VALUE. The program
// is one of its own so that no one else loads an HTTP library, and so that what it does costs
// neither the recording's memory nor its time. Constant after parsing; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"

namespace collect::upload {

inline constexpr char kStoreUrlScheme[] = "s3://";

inline bool is_store_url(std::string_view word) {
  return word.starts_with(kStoreUrlScheme);
}

struct StoreUrl {
  std::string bucket{};
  std::string below{};  // what the keys begin with; empty: all
};
// "s3://BUCKET" or "s3://BUCKET/v1/…". kInvalidArgument with what is wrong.
Result<StoreUrl> parse_store_url(std::string_view url);

enum class KeepUntil : uint8_t {
  kAlways,
  kCommitted,
  kDays,  // after the end of the session, and committed
};

// How long a session stays on the disk beside the store.
struct KeepLocal {
  KeepUntil until = KeepUntil::kAlways;
  uint32_t days = 0;
};
// "always", "until_committed", "14 days" or "14d".
Result<KeepLocal> parse_keep_local(std::string_view words);

// Which tables of Parquet are beside a session in the store (formats/parquet/TABLES.md).
enum class StoreTables : uint8_t {
  kOff,
  kFunctions,  // what its functions took, in all and by second: small
  kAll,        // each call and event too
};
// "off", "functions" or "all".
Result<StoreTables> parse_store_tables(std::string_view word);

// Where the store is. What is empty comes from the variables that other S3 programs read too:
// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, AWS_CA_BUNDLE.
struct StoreLocation {
  std::string url{};
  std::string endpoint{};  // "https://host:port"; without any: AWS's, of the region
  std::string region{};    // without any: us-east-1
  uint64_t max_bytes_per_s = 0;
};

enum class StoreWant : uint8_t {
  kUpload,    // paths: sessions, or directories above them
  kDownload,  // into `output`
  kList,
  kVerify,
  kFollow,  // uploads what is sealed below `output` until it is ended; prints StoreReports
};

struct StoreRequest {
  StoreWant want = StoreWant::kList;
  StoreLocation location{};
  std::vector<std::string> paths{};
  std::string output{};               // directory
  std::string keep_local = "always";  // of kFollow
  std::string tables = "off";         // of kUpload and kFollow
  bool packed = false;                // of kFollow: sessions are packed before they are uploaded
  bool json = false;
  bool progress = false;  // on the error stream
  bool strict = false;    // of kVerify, as of `verify`
  bool allow_incomplete = false;
  size_t columns = 0;  // of the terminal; 0: the output stream is none

  std::vector<std::string> to_arguments() const;
  // kInvalidArgument: an argument that is none.
  static Result<StoreRequest> parse(const std::vector<std::string>& arguments);
};

}  // namespace collect::upload
