#include "storage/fs/whole_file.h"

#include <fmt/core.h>

namespace collect::storage {

Status write_whole_file(Fs& fs, const std::string& directory, const std::string& name,
                        const std::string& temporary, const std::string& text, bool durable) {
  const std::string path = fmt::format("{}/{}", directory, temporary);
  auto file = fs.open(path, OpenMode::kCreate);
  if (!file.ok() && file.code() == Code::kAlreadyExists) {
    COLLECT_TRY(fs.remove_file(path));  // of a writer that did not get to its rename
    file = fs.open(path, OpenMode::kCreate);
  }
  if (!file.ok()) return file.error();
  const Bytes parts[] = {Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size())};
  Status status = (*file)->write_at(0, parts);
  if (status.ok() && durable) status = (*file)->sync();
  if (status.ok()) status = fs.rename(path, fmt::format("{}/{}", directory, name));
  if (!status.ok()) {
    (void)fs.remove_file(path);  // gives its blocks back; the old file still is
    return status;
  }
  return durable ? fs.sync_directory(directory) : Status();
}

Result<std::string> read_whole_file(Fs& fs, const std::string& path, size_t most_bytes) {
  const auto file = fs.open(path, OpenMode::kRead);
  if (!file.ok()) return file.error();
  const auto size = (*file)->size();
  if (!size.ok()) return size.error();
  if (*size > most_bytes) {
    return Error{Code::kLimit,
                 fmt::format("{}: {} bytes, at most {} are read", path, *size, most_bytes)};
  }
  std::string text(*size, '\0');
  const auto got =
      (*file)->read_at(0, MutableBytes(reinterpret_cast<uint8_t*>(text.data()), text.size()));
  if (!got.ok()) return got.error();
  text.resize(*got);
  return text;
}

}  // namespace collect::storage
