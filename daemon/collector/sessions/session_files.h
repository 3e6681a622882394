// Handing out, converting, copying and removing the files of sessions.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/collector/agents/registry.h"
#include "daemon/collector/sessions/sealed_work.h"
#include "daemon/collector/sessions/session_converter.h"
#include "daemon/collector/sessions/session_use.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"
#include "daemon/symbolize/naming_queue.h"
#include "formats/core/task_threads.h"
#include "storage/fs/fs.h"
#include "storage/model/session_layout.h"

namespace collect::daemon {

class SessionFiles {
 public:
  // What is not its own, and outlives it.
  struct Needs {
    std::string root;
    storage::Fs& fs;
    Registry& registry;
    ingest::Ingest& ingest;
    SessionConverter& converter;
    symbolize::NamingQueue& naming;
    SealedWork& sealed_work;
    SessionUse in_use;
    TaskThreads& files;  // where files are read
    std::function<void(const ingest::SessionSnapshot&)> on_made;
  };
  // Serves GetManifestRequest, ListFilesRequest, SnapshotSessionRequest, PackSessionRequest,
  // UnpackSessionRequest and DeleteSessionRequest.
  SessionFiles(Needs needs, control::Methods& methods);

  void open(const std::string& name, const std::string& path,
            control::Callback<std::shared_ptr<control::FileReader>> done);
  void remove(const std::string& name, control::Callback<api::DeleteSessionResponse> done);
  void convert(const std::string& name, uint32_t atf_version, control::ConversionProgress progress,
               control::Callback<api::ConversionEnd> done);

  // The session that is named, or the newest: of those that are not sealed. `consequence`: what is
  // said of a sealed one.
  Result<ingest::SessionSnapshot> recording_session(const std::string& name,
                                                    const std::string& consequence) const;
  Result<std::string> directory_of(const ingest::SessionSnapshot& session) const;

 private:
  struct Named {
    ingest::SessionSnapshot shown;
    storage::SessionPath session_path;
  };
  Result<Named> find(const std::string& name) const;
  Result<Named> find_sealed(const std::string& name) const;
  void pack(const std::string& name, storage::PackWay way, control::Callback<api::Session> done);
  void manifest(const std::string& name, control::Callback<api::Manifest> done);
  void list(const std::string& name, control::Callback<api::ListFilesResponse> done);
  void snapshot(const std::string& name, control::Callback<api::Session> done);
  void make_snapshot(const Named& named, SessionConverter::Snapshot snapshot,
                     std::shared_ptr<void> use, control::Callback<api::Session> done);
  api::Session show_made(const storage::MadeSession& made, ingest::SystemTime start_time);

  Needs needs_;
};

}  // namespace collect::daemon
