// One sealed session into the bucket: what is not there yet, then COMMIT. It keeps nothing of its
// own on the disk: each run looks what an earlier one has brought there, so it may be ended at any
// point and begun again.
//
// Used on one thread. UPLOAD.md "One session".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/upload/commit.h"
#include "daemon/upload/object_upload.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"

namespace collect::upload {

enum class PartOutcome : uint8_t {
  kCommitted,  // by this run
  kPresent,    // an earlier one had
};

struct UploadedPart {
  PartOutcome outcome{};
  std::string prefix{};
  Commit commit{};
  uint64_t file_bytes = 0;
  uint64_t ended_unix_ns = 0;  // of the session
};

// Tables that were made of a session, for engines that read Parquet; formats/parquet/TABLES.md.
struct TableFiles {
  std::string directory{};
  std::shared_ptr<void> keeper{};  // with it the directory goes
};

struct WantedTables {
  std::vector<std::string> names{};  // of files; empty: none are wanted
  std::function<Result<TableFiles>(const storage::SessionPath&)> make{};
};

class PartUpload {
 public:
  PartUpload(storage::Fs& fs, ObjectUpload& objects, SendingTo to, WantedTables tables = {})
      : fs_(fs), objects_(objects), to_(std::move(to)), tables_(std::move(tables)) {}

  // kAlreadyExists: a COMMIT of these keys is there that says something else, and stays;
  // kInvalidArgument: the session is not sealed, or no tables can be made of it, and it is
  // committed; kUnavailable: a later run may do it. Else the codes of ObjectUpload.
  Result<UploadedPart> run(const storage::SessionPath& session_path, const PartName& part);

  // The last error came from the server or the way there, and not from this machine.
  bool failed_at_store() const { return to_.retries.last_failed(); }

 private:
  Result<FoundObjects> look(const std::string& prefix);
  // One key may have several open uploads, when two runs began it or an answer was lost.
  Result<std::vector<OpenUpload>> open_uploads(const std::string& prefix);
  Status abort_open(const std::string& prefix);
  Result<UploadedPart> compare(const storage::SessionPath& session_path, const std::string& prefix);
  Result<UploadedPart> send(const storage::SessionPath& session_path, const PartName& part,
                            const storage::Manifest& manifest, const std::string& prefix,
                            const FoundObjects& found);
  bool has_tables(const std::string& prefix, const FoundObjects& found) const;
  Status send_tables(const storage::SessionPath& session_path, const std::string& prefix,
                     const FoundObjects& found);
  Status commit(const std::string& prefix, const std::string& json);

  storage::Fs& fs_;
  ObjectUpload& objects_;
  const SendingTo to_;
  const WantedTables tables_;
};

// kOk: each file of the session that is no copy of others (index.lod is one) is named by `commit`
// with its size and checksum. kUnavailable: `file` differs or is not named. Reads every file.
Status covers(const Commit& commit, storage::Fs& fs, const storage::SessionPath& session_path);

}  // namespace collect::upload
