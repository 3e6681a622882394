#include "daemon/warehouse/remote_parts.h"

#include <random>
#include <set>

#include "daemon/upload/commit_object.h"
#include "daemon/upload/download.h"
#include "daemon/upload/store.h"
#include "storage/clock.h"
#include "storage/session_layout.h"

namespace collect::warehouse {
namespace {

std::string session_of(const std::string& part) {
  return part.substr(0, part.find("part=", part.find("/session=")));
}

}  // namespace

RemoteParts::RemoteParts(std::string below, std::unique_ptr<upload::CredentialsSource> credentials,
                         std::unique_ptr<upload::S3Client> client, upload::Pauses& pauses,
                         std::function<void(const Error&)> remark)
    : below_(std::move(below)),
      credentials_(std::move(credentials)),
      client_(std::move(client)),
      retries_({}, pauses, std::random_device()(), std::move(remark)) {}

Result<std::unique_ptr<RemoteParts>> RemoteParts::open(std::string_view uri, upload::Pauses& pauses,
                                                       std::function<void(const Error&)> remark) {
  upload::StorePlace place;
  place.url = uri;
  auto opened = upload::open_place(place, storage::system_clock());
  if (!opened.ok()) return opened.error();
  auto client =
      upload::S3Client::create(opened->settings, *opened->credentials, storage::system_clock());
  if (!client.ok()) return client.error();
  std::string below = opened->below.empty() ? upload::kKeyRoot : std::move(opened->below);
  return std::unique_ptr<RemoteParts>(
      new RemoteParts(std::move(below), std::move(opened->credentials), std::move(*client), pauses,
                      std::move(remark)));
}

Result<std::vector<RemoteSession>> RemoteParts::sessions() {
  const auto below = upload::list_committed_parts(*client_, retries_, below_);
  if (!below.ok()) return below.error();
  std::vector<RemoteSession> sessions;
  for (const std::string& part : below->prefixes) {
    const std::string prefix = session_of(part);
    if (sessions.empty() || sessions.back().prefix != prefix) sessions.push_back({prefix, {}});
    sessions.back().parts.push_back(part);
  }
  for (RemoteSession& session : sessions) {
    if (session.prefix.starts_with(below_)) continue;
    auto all = upload::list_committed_parts(*client_, retries_, session.prefix);
    if (!all.ok()) return all.error();
    session.parts = std::move(all->prefixes);
  }
  return sessions;
}

Result<std::vector<PartIdentity>> RemoteParts::identify(const RemoteSession& session) {
  std::vector<PartIdentity> parts;
  for (const std::string& prefix : session.parts) {
    const auto commit = upload::read_commit(*client_, retries_, prefix);
    if (!commit.ok()) return commit.error();
    uint32_t manifest_crc32c = 0;
    for (const upload::CommittedFile& file : commit->files) {
      if (file.path == storage::kManifestFile) manifest_crc32c = file.crc32c;
    }
    parts.push_back(identify_committed(*commit, manifest_crc32c));
  }
  return parts;
}

Result<std::string> RemoteParts::download(const std::string& part, bool is_merged, storage::Fs& fs,
                                          const std::string& directory) {
  return upload::download_part(
      *client_, retries_, part, fs, directory, [is_merged](std::string_view path) {
        return path == storage::kManifestFile || path.ends_with("/index.atf") ||
               (is_merged && path.ends_with(".atf"));
      });
}

}  // namespace collect::warehouse
