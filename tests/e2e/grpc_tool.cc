#include "tests/e2e/grpc_tool.h"

#include <cstdlib>
#include <filesystem>

namespace collect::e2e {
namespace {

constexpr char kService[] = "collect.control.v1.Collector";
constexpr seconds kCallLimit{30};

}  // namespace

GrpcTool::GrpcTool(const std::string& variable) : is_buf_(variable == "COLLECT_BUF") {
  const char* const path = std::getenv(variable.c_str());
  if (path != nullptr && std::filesystem::exists(path)) program_ = path;
}

Arguments GrpcTool::command(const Arguments& more) const {
  Arguments command = {program_, "-plaintext"};
  if (is_buf_) command = {program_, "curl", "--protocol", "grpc", "--http2-prior-knowledge"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

Ending GrpcTool::call(const CollectorProcess& collector, const Scratch& scratch,
                      const std::string& method, const std::string& request) const {
  return run(scratch.path(), call_line(collector, method, request), {}, kCallLimit);
}

Arguments GrpcTool::call_line(const CollectorProcess& collector, const std::string& method,
                              const std::string& request) const {
  const std::string path = std::string(kService) + "/" + method;
  Arguments more = {"-d", request};
  if (is_buf_) {
    more.push_back("http://" + collector.control() + "/" + path);
  } else {
    more.insert(more.end(), {collector.control(), path});
  }
  return command(more);
}

Ending GrpcTool::list_methods(const CollectorProcess& collector, const Scratch& scratch) const {
  const Arguments more = is_buf_ ? Arguments{"--list-methods", "http://" + collector.control()}
                                 : Arguments{collector.control(), "list", kService};
  return run(scratch.path(), command(more), {}, kCallLimit);
}

}  // namespace collect::e2e
