#include "daemon/ctl/record/processes/list_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <unordered_map>

#include "daemon/ctl/record/processes/attach_process.h"
#include "daemon/ctl/record/processes/plan.h"
#include "daemon/ctl/record/processes/plan_coverage.h"
#include "daemon/ctl/record/run/dynamic_plans.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"
#include "daemon/inject/target.h"
#include "daemon/patch/plan_maker.h"
#include "daemon/symbolize/symbolizer.h"
#include "formats/core/text/figures.h"
#include "storage/select/function_filter.h"

namespace collect::ctl {
namespace {

using patch::PlanFunction;
using patch::PlanView;
using patch::Refusal;

constexpr uint64_t kMostNames = 1u << 20;
constexpr uint64_t kMostNameBytes = 256u << 20;

struct ListedFunction {
  PlanFunction function{};
  std::string name;  // empty: no one knows it

  bool is_recorded() const { return function.refusal == static_cast<uint32_t>(Refusal::kNone); }
  const char* reason() const { return patch::refusal_text(static_cast<Refusal>(function.refusal)); }
};

// ---- of a file

std::vector<ListedFunction> functions_of(const PlanView& plan) {
  std::vector<ListedFunction> functions(plan.header().function_count);
  for (uint32_t i = 0; i < functions.size(); ++i) functions[i].function = plan.function(i);
  std::ranges::sort(functions, {}, [](const auto& one) { return one.function.address; });
  return functions;
}

// Why there are no names; empty: there are.
std::string give_names(const std::string& path, const PlanView& plan,
                       std::vector<ListedFunction>& functions) {
  storage::ModuleInfo module;
  module.path = path;
  const Bytes build_id = Bytes(plan.header().build_id).first(plan.header().build_id_bytes);
  module.build_id.assign(build_id.begin(), build_id.end());
  std::vector<uint32_t> addresses;
  for (const ListedFunction& one : functions) addresses.push_back(one.function.address);
  symbolize::SymbolizerOptions symbolizer;
  symbolizer.program = symbolize::symbolizer_program();
  const auto answer = symbolize::Symbolizer(symbolizer)
                          .name(module, addresses, kMostNames, kMostNameBytes, nullptr);
  if (!answer.ok()) return answer.error().message;
  std::unordered_map<uint32_t, std::string> names;
  for (const symbolize::NamedAddress& named : answer->names) names[named.address] = named.name;
  for (ListedFunction& one : functions) {
    const auto known = names.find(one.function.address);
    if (known != names.end()) one.name = known->second;
  }
  return answer->problem;
}

std::string hex_text(uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

void print_function(const ListedFunction& one, TextOut& out) {
  const std::string address = hex_text(one.function.address);
  out.repeat(' ', 10 - std::min<size_t>(address.size(), 10));
  out.put(address);
  out.dec(one.function.bytes, 9);
  out.put("  ");
  out.printable(one.name.empty() ? "?" : one.name);
  if (!one.is_recorded()) {
    out.put("  (");
    out.put(one.reason());
    out.put(")");
  }
  out.put('\n');
}

Json json_of(const ListedFunction& one) {
  Json json{{"address", one.function.address},
            {"bytes", one.function.bytes},
            {"recorded", one.is_recorded()}};
  add_text(json, "name", one.name);
  if (!one.is_recorded()) json["reason"] = one.reason();
  return json;
}

int list_file(const ListOptions& options, const Answer& answer, std::ostream& out,
              std::ostream& err) {
  auto filter = select::NameFilter::make(options.functions);
  if (!filter.ok()) return answer.refuse_briefly(filter.error(), kExitUnreadable);
  std::error_code error;
  const std::string path = std::filesystem::absolute(options.path, error).string();
  const auto made = patch::plan_of_file(path);
  if (!made.ok()) {
    const std::string& why = made.error().message;
    const bool has_path = why.starts_with(path);
    return answer.refuse_briefly(
        {made.code(), has_path ? why : fmt::format("{}: {}", options.path, why)},
        code_without_plan(made.error()));
  }
  PlanView plan;
  (void)plan.parse(*made);  // plan_of_file() has
  std::vector<ListedFunction> functions = functions_of(plan);
  const std::string unnamed = give_names(path, plan, functions);
  std::vector<std::string> known;
  std::erase_if(functions, [&](const ListedFunction& one) {
    if (!one.name.empty()) known.push_back(one.name);
    return !filter->wants(one.name) || (!options.all && !one.is_recorded());
  });
  const Status found = filter->check_all_found("function", known);
  if (!found.ok()) return answer.refuse_briefly(found.error(), kExitNothingRecorded);
  const PlanCoverage coverage(plan);
  TextOut text(out);
  if (options.json) {
    Json document = json_document();
    document["path"] = options.path;
    add_text(document, "build_id", build_id_text(plan));
    document["functions"] = Json::array();
    for (const ListedFunction& one : functions) document["functions"].push_back(json_of(one));
    text.put(json_line(document));
  } else {
    text.put("   Address    Bytes  Function\n");
    for (const ListedFunction& one : functions) print_function(one, text);
  }
  text.flush();
  if (!options.json) {
    err << with_thousands(coverage.recorded) << " of " << counted(coverage.functions, "function")
        << " can be recorded (" << percent_text(coverage.recorded, coverage.functions) << ")\n";
    if (!unnamed.empty()) err << "collectctl: functions have no names: " << unnamed << "\n";
  }
  return coverage.recorded == 0 ? kExitNothingRecorded : 0;
}

// ---- of a process

struct ListedFile {
  std::string path;
  uint64_t functions = 0;
  uint64_t recorded = 0;
  std::string problem;  // why there is no plan
};

ListedFile file_of(const std::string& path) {
  ListedFile file{path, 0, 0, ""};
  if (patch::is_never_traced(path)) {
    file.problem = patch::kAgentNeedsIt;
    return file;
  }
  const auto made = patch::plan_of_file(path);
  if (!made.ok()) {
    file.problem = made.error().message;
    return file;
  }
  PlanView plan;
  (void)plan.parse(*made);
  const PlanCoverage coverage(plan);
  file.functions = coverage.functions;
  file.recorded = coverage.recorded;
  return file;
}

void print_file(const ListedFile& file, TextOut& out) {
  if (file.problem.empty()) {
    const std::string number = with_thousands(file.functions);
    const std::string share = percent_text(file.recorded, file.functions);
    out.repeat(' ', 10 - std::min<size_t>(number.size(), 10));
    out.put(number);
    out.repeat(' ', 10 - std::min<size_t>(share.size(), 10));
    out.put(share + "  ");
    out.printable(file.path);
  } else {
    out.repeat(' ', 22);
    out.printable(file.path);
    out.put("  (");
    out.sentence(file.problem);
    out.put(")");
  }
  out.put('\n');
}

int list_process(const ListOptions& options, const Answer& answer, std::ostream& out) {
  const auto target = inject::look_at_target(options.pid);
  if (!target.ok()) {
    const bool is_there = target.code() != Code::kNotFound;
    return answer.refuse_briefly(target.error(), is_there ? kExitNothingRecorded : kExitUnreadable);
  }
  std::vector<ListedFile> files;
  for (const std::string& path : target->modules) files.push_back(file_of(path));
  const bool is_attached = has_agent(options.pid);
  TextOut text(out);
  if (options.json) {
    Json document = json_document();
    document["pid"] = options.pid;
    document["name"] = target->name;
    document["has_agent"] = is_attached;
    document["files"] = Json::array();
    for (const ListedFile& file : files) {
      Json json{{"path", file.path}};
      if (file.problem.empty()) {
        json["functions"] = file.functions;
        json["recorded"] = file.recorded;
      } else {
        json["problem"] = file.problem;
      }
      document["files"].push_back(std::move(json));
    }
    text.put(json_line(document));
  } else {
    text.printable(target->name);
    text.put(fmt::format(" ({}){}", options.pid,
                         is_attached ? ", which has an agent\n" : ", which can be attached to\n"));
    text.put(" Functions  Recorded  File\n");
    for (const ListedFile& file : files) print_file(file, text);
  }
  return 0;
}

}  // namespace

int list(const ListOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{options.json, out, err};
  if (options.summary) return plan({options.path, options.all, options.json}, out, err);
  return options.pid != 0 ? list_process(options, answer, out)
                          : list_file(options, answer, out, err);
}

}  // namespace collect::ctl
