#include "storage/convert/wtf/wtf_binary.h"

#include <algorithm>

#include "formats/wtf/json/json.h"
#include "formats/wtf/layout.h"

namespace collect::convert {

Result<WtfBinary> WtfBinary::of(Bytes file, wtf::Findings& findings, const std::string& directory) {
  WtfBinary binary(file);
  const Bytes head = file.first(std::min(file.size(), wtf::kSniffBytes));
  if (wtf::file_kind(head) != wtf::FileKind::kJson) return binary;
  auto output = read::UnnamedFile::create(directory);
  if (!output.ok()) return output.error();
  const auto totals = wtf::json_to_binary(file, *output, findings);
  if (!totals.ok()) return totals.error();
  auto converted = output->bytes();
  if (!converted.ok()) return converted.error();
  binary.converted_ = std::move(*converted);
  return binary;
}

}  // namespace collect::convert
