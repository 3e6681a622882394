#include <algorithm>

#include "storage/convert/convert.h"
#include "storage/fs/rooted_directory.h"

namespace collect::convert {
namespace {

using read::CaptureKind;

using OpenFiles = std::vector<std::pair<std::string, Result<read::FileBytes>>>;

// Nothing where it is no directory, or has none.
OpenFiles containers_in(const std::string& path) {
  OpenFiles files;
  const auto directory = storage::RootedDirectory::open(path);
  if (!directory.ok()) return files;
  const auto names = directory->list("");
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    if (!name.starts_with("capture-") || !name.ends_with(".rtc")) continue;
    files.emplace_back(directory->path_of(name), read::FileBytes::open(*directory, name));
  }
  return files;
}

OpenFiles open_all(const std::vector<std::string>& paths) {
  OpenFiles files;
  for (const std::string& path : paths) files.emplace_back(path, read::FileBytes::open(path));
  return files;
}

Result<CaptureKind> kind_of(const std::string& path, Bytes file) {
  if (const auto kind = read::capture_kind_of(file)) return *kind;
  return read::not_a_capture(path, file);
}

Result<Input> input_of(OpenFiles files) {
  Input input;
  for (auto& [path, bytes] : files) {
    if (!bytes.ok()) return bytes.error();
    const auto kind = kind_of(path, bytes->bytes());
    if (!kind.ok()) return kind.error();
    if (!input.files.empty() && (*kind != CaptureKind::kRtc || input.kind != CaptureKind::kRtc)) {
      return Error{Code::kInvalidArgument,
                   path +
                       ": several inputs are converted only when all are RTC containers of one "
                       "session"};
    }
    input.kind = *kind;
    input.files.emplace_back(path, std::move(*bytes));
  }
  return input;
}

}  // namespace

Result<Input> open_input(const std::vector<std::string>& paths) {
  if (paths.size() != 1) return input_of(open_all(paths));
  auto trace = read::open_trace(paths.front());
  if (trace.ok() && trace->kind != read::TraceKind::kUnknownFile) {
    const bool is_session =
        trace->kind == read::TraceKind::kSession || trace->kind == read::TraceKind::kThread;
    if (is_session && trace->threads.empty()) {
      // The thread files are gone, or never were: the containers hold the session too.
      auto containers = containers_in(trace->path);
      if (!containers.empty()) return input_of(std::move(containers));
    }
    Input input;
    input.trace = std::move(*trace);
    return input;
  }
  if (trace.ok()) return input_of(open_all(paths));
  auto containers = containers_in(paths.front());
  if (containers.empty()) return trace.error();
  return input_of(std::move(containers));
}

Result<std::vector<Input>> open_inputs(const std::vector<std::string>& paths, bool takes_several) {
  std::vector<Input> inputs;
  if (!takes_several || paths.size() == 1) {
    auto input = open_input(paths);
    if (!input.ok()) return input.error();
    inputs.push_back(std::move(*input));
    return inputs;
  }
  for (const std::string& path : paths) {
    auto input = open_input({path});
    if (!input.ok()) return input.error();
    inputs.push_back(std::move(*input));
  }
  const bool is_one = std::all_of(inputs.begin(), inputs.end(), [](const Input& input) {
    return input.kind == CaptureKind::kRtc;
  });
  if (is_one) return open_inputs(paths, false);
  return inputs;
}

}  // namespace collect::convert
