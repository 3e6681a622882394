// Sessions in a bucket, as the loader takes them: what COMMIT names, downloaded for a while.
//
// Used on one thread, which waits for the bucket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/upload/part_keys.h"
#include "daemon/upload/store.h"
#include "daemon/warehouse/part_identity.h"
#include "storage/fs/fs.h"

namespace collect::warehouse {

// Parts of one session, by their prefixes: "v1/ab/device=D/session=S/part=P/".
struct RemoteSession {
  std::string prefix;  // "v1/ab/device=D/session=S/"
  std::vector<std::string> parts;
};

class RemoteParts {
 public:
  // `uri`: "s3://BUCKET" or "s3://BUCKET/PREFIX"; server and credentials as Store finds them.
  // `remark`: an attempt that will be made again. kInvalidArgument: what is wrong.
  static Result<std::unique_ptr<RemoteParts>> open(std::string_view uri,
                                                   std::function<void(const Error&)> remark);

  // Those with a part below the URI, each with all of its committed parts, also those beside it.
  Result<std::vector<RemoteSession>> sessions();
  // By COMMIT: nothing else is read.
  Result<PartIdentity> identify(const std::string& part);
  // Into a directory: what rows are made of, and where it is to be merged, all that was recorded,
  // never containers. The directory of the session there.
  Result<std::string> download(const std::string& part, bool is_merged, storage::Fs& fs,
                               const std::string& directory);
  std::string place_of(const std::string& part) const { return store_->url_of(part); }

 private:
  explicit RemoteParts(std::unique_ptr<upload::Store> store)
      : below_(store->below().empty() ? upload::kKeyRoot : store->below()),
        store_(std::move(store)) {}

  const std::string below_;
  const std::unique_ptr<upload::Store> store_;
};

}  // namespace collect::warehouse
