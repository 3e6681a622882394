#include "daemon/ctl/captures/wtf_binary.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "daemon/ctl/convert/output_file.h"
#include "formats/wtf/json.h"
#include "formats/wtf/layout.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

// Of ourselves alone, and gone with everything in it as soon as the file is mapped.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    path_ = (fs::temp_directory_path(error) / "wtf-json-XXXXXX").string();
    if (error || ::mkdtemp(path_.data()) == nullptr) {
      error_ = error ? error.value() : errno;
      path_.clear();
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Status status() const {
    return error_ == 0 ? Status() : errno_error(error_, "a folder for temporary files");
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int error_ = 0;
};

}  // namespace

Result<WtfBinary> WtfBinary::of(Bytes file, wtf::Findings& findings) {
  WtfBinary binary(file);
  const Bytes head = file.first(std::min(file.size(), wtf::kSniffBytes));
  if (wtf::file_kind(head) != wtf::FileKind::kJson) return binary;
  const TemporaryFolder folder;
  COLLECT_TRY(folder.status());
  auto output = OutputFile::create(folder.path() + "/binary.wtf-trace", true);
  if (!output.ok()) return output.error();
  const auto totals = wtf::json_to_binary(file, *output, findings);
  if (!totals.ok()) return totals.error();
  COLLECT_TRY(output->commit());
  auto converted = FileBytes::open(output->path());
  if (!converted.ok()) return converted.error();
  binary.converted_ = std::move(*converted);
  return binary;
}

}  // namespace collect::ctl
