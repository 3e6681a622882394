#include "storage/manifest_file.h"

#include "storage/session_layout.h"

namespace collect::storage {

Status write_manifest(Fs& fs, const std::string& directory, const Manifest& manifest, bool durable,
                      uint64_t* bytes) {
  const std::string json = manifest_to_json(manifest);
  if (bytes != nullptr) *bytes = json.size();
  const std::string temporary = directory + "/" + kManifestTemporaryFile;
  auto file = fs.open(temporary, OpenMode::kCreate);
  if (!file.ok() && file.code() == Code::kAlreadyExists) {
    COLLECT_TRY(fs.remove_file(temporary));  // of a writer that did not get to its rename
    file = fs.open(temporary, OpenMode::kCreate);
  }
  if (!file.ok()) return file.error();
  const Bytes parts[] = {Bytes(reinterpret_cast<const uint8_t*>(json.data()), json.size())};
  Status status = (*file)->write_at(0, parts);
  if (status.ok() && durable) status = (*file)->sync();
  if (status.ok()) status = fs.rename(temporary, directory + "/" + kManifestFile);
  if (!status.ok()) {
    (void)fs.remove_file(temporary);  // gives its blocks back; the old manifest still stands
    return status;
  }
  return durable ? fs.sync_directory(directory) : Status();
}

}  // namespace collect::storage
