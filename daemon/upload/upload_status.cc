#include "daemon/upload/upload_status.h"

#include <nlohmann/json.hpp>

namespace collect::upload {
namespace {

using nlohmann::json;

// Calls visit(name, field) for each number.
template <class Status, class Visit>
void each_number(Status& status, Visit&& visit) {
  visit("pending_sessions", status.pending_sessions);
  visit("pending_bytes", status.pending_bytes);
  visit("oldest_unix_ns", status.oldest_unix_ns);
  visit("committed_sessions", status.committed_sessions);
  visit("committed_bytes", status.committed_bytes);
  visit("present_sessions", status.present_sessions);
  visit("sent_bytes", status.sent_bytes);
  visit("removed_sessions", status.removed_sessions);
  visit("removed_bytes", status.removed_bytes);
  visit("refused_sessions", status.refused_sessions);
  visit("failed_runs", status.failed_runs);
  visit("problem_since_unix_ns", status.problem_since_unix_ns);
  visit("clock_correction_s", status.clock_correction_s);
}

}  // namespace

std::string StoreReport::to_line() const {
  json line = json::object();
  if (!remove.empty()) {
    line["remove"] = remove;
  } else {
    each_number(status, [&](const char* name, const auto& field) { line[name] = field; });
    line["problem"] = status.problem;
    json& retries = line["retries"] = json::array();
    for (const auto& [code, count] : status.retries) retries.push_back({code, count});
  }
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<StoreReport> StoreReport::parse(std::string_view text) {
  StoreReport report;
  try {
    const json line = json::parse(text);
    if (line.contains("remove")) {
      report.remove = line.at("remove").get<std::string>();
      return report;
    }
    each_number(report.status, [&](const char* name, auto& field) { line.at(name).get_to(field); });
    line.at("problem").get_to(report.status.problem);
    for (const json& one : line.at("retries")) {
      report.status.retries[one.at(0).get<int>()] = one.at(1).get<uint64_t>();
    }
  } catch (const json::exception& error) {
    return Error{Code::kDamaged, std::string("no report of collect-store: ") + error.what()};
  }
  return report;
}

}  // namespace collect::upload
