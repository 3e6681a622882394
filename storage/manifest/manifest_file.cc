#include "storage/manifest/manifest_file.h"

#include "storage/fs/whole_file.h"
#include "storage/model/session_layout.h"

namespace collect::storage {

Status write_manifest(Fs& fs, const std::string& directory, const Manifest& manifest, bool durable,
                      uint64_t* bytes) {
  const std::string json = manifest_to_json(manifest);
  if (bytes != nullptr) *bytes = json.size();
  return write_whole_file(fs, directory, kManifestFile, kManifestTemporaryFile, json, durable);
}

}  // namespace collect::storage
