#include "daemon/warehouse/remote_parts.h"

#include <set>

#include "daemon/upload/commit_object.h"
#include "daemon/upload/download.h"
#include "storage/model/session_layout.h"

namespace collect::warehouse {
namespace {

std::string session_of(const std::string& part) {
  return part.substr(0, part.find("part=", part.find("/session=")));
}

}  // namespace

Result<std::unique_ptr<RemoteParts>> RemoteParts::open(std::string_view uri,
                                                       std::function<void(const Error&)> remark) {
  upload::StoreLocation location;
  location.url = uri;
  auto store = upload::Store::open(location, std::move(remark));
  if (!store.ok()) return store.error();
  return std::unique_ptr<RemoteParts>(new RemoteParts(std::move(*store)));
}

Result<std::vector<RemoteSession>> RemoteParts::sessions() {
  const auto below = upload::list_committed_parts(store_->client(), store_->retries(), below_);
  if (!below.ok()) return below.error();
  std::vector<RemoteSession> sessions;
  for (const std::string& part : below->prefixes) {
    const std::string prefix = session_of(part);
    if (sessions.empty() || sessions.back().prefix != prefix) sessions.push_back({prefix, {}});
    sessions.back().parts.push_back(part);
  }
  for (RemoteSession& session : sessions) {
    if (session.prefix.starts_with(below_)) continue;
    auto all = upload::list_committed_parts(store_->client(), store_->retries(), session.prefix);
    if (!all.ok()) return all.error();
    session.parts = std::move(all->prefixes);
  }
  return sessions;
}

Result<PartIdentity> RemoteParts::identify(const std::string& part) {
  const auto commit = upload::read_commit(store_->client(), store_->retries(), part);
  if (!commit.ok()) return commit.error();
  uint32_t manifest_crc32c = 0;
  for (const upload::CommittedFile& file : commit->files) {
    if (file.path == storage::kManifestFile) manifest_crc32c = file.crc32c;
  }
  return identify_committed(*commit, manifest_crc32c);
}

Result<std::string> RemoteParts::download(const std::string& part, bool is_merged, storage::Fs& fs,
                                          const std::string& directory) {
  return upload::download_part(
      store_->client(), store_->retries(), part, fs, directory, [is_merged](std::string_view path) {
        return path == storage::kManifestFile || path.ends_with("/index.atf") ||
               (is_merged && path.ends_with(".atf"));
      });
}

}  // namespace collect::warehouse
