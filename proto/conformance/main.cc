// collect-conformance: its command line.
#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/threads.h"
#include "formats/core/version.h"
#include "proto/conformance/checked_peer.h"

namespace collect::conformance {
namespace {

constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(1);

constexpr char kFooter[] =
    "The protocol is described in proto/wire/WIRE.md; each check names its section. A check is\n"
    "ok, failed (what was expected and what came), or skipped (why it says nothing).\n"
    "\n"
    "A collector gets a process of its own for each check, and some sessions that are not\n"
    "complete. PROGRAM is started again and again with COLLECT_CONNECT, and ended when a check\n"
    "is over; its standard output is discarded. Give it something to record that takes a few\n"
    "seconds at most. The first of its processes that connects is checked. Connections are\n"
    "plain, without TLS.\n"
    "\n"
    "Exit code: 0 if no check failed, 1 if one did, 2 wrong usage, 125 if nothing could be\n"
    "checked: no collector answers at ADDRESS, or PROGRAM cannot be started.\n"
    "\n"
    "Examples:\n"
    "  collect-conformance 127.0.0.1:7710\n"
    "  collect-conformance -- env LD_PRELOAD=libcollect_agent.so ./app\n"
    "  collect-conformance --check clock-reply -- ./program_with_an_agent";

// "10s", "500ms", "2m" or "1h" as milliseconds.
CLI::Validator timeout_check() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const std::array<std::pair<std::string, double>, 4> units = {
            {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}}};
        size_t used = 0;
        double time = -1;
        try {
          time = std::stod(text, &used);
        } catch (const std::exception&) {
          return fmt::format("\"{}\" is not a time such as 500ms or 10s", text);
        }
        const std::string unit = used == text.size() ? "s" : text.substr(used);
        const auto known = std::find_if(units.begin(), units.end(),
                                        [&unit](const auto& one) { return one.first == unit; });
        if (known == units.end())
          return fmt::format("\"{}\" is not a time such as 500ms or 10s", text);
        time *= known->second;
        if (!(time >= 1 && time <= static_cast<double>(kLongestTimeout.count()))) {
          return fmt::format("\"{}\" is not between 1ms and 1h", text);
        }
        text = std::to_string(static_cast<int64_t>(time));
        return {};
      },
      "", "duration");
}

int parse_and_check(int argc, char** argv) {
  std::vector<std::string> ours(argv + 1, argv + argc);
  PeerOptions options;
  const auto dashes = std::find(ours.begin(), ours.end(), "--");
  if (dashes != ours.end()) options.program.assign(dashes + 1, ours.end());
  ours.erase(dashes, ours.end());
  CLI::App app("Check a collector or an agent against the protocol between them",
               "collect-conformance");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("-V,--version", std::string("collect-conformance ") + kVersion);
  app.add_option("ADDRESS", options.address,
                 "Collector to check: where agents connect to it, host:port or unix:/path");
  // For --help alone: it was taken off the line.
  std::vector<std::string> program;
  app.add_option("PROGRAM", program,
                 "Behind --: program whose agent is checked, with its arguments");
  app.add_option("--check", options.checks, "Only this check, by its name; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--list", options.list, "List the checks and the rules that they hold to");
  app.add_option("--token-file", options.token_file,
                 "File with the token that both sides have to prove")
      ->type_name("FILE");
  std::string timeout;
  app.add_option("--timeout", timeout, "How long to wait for what has to come (default 10s)")
      ->type_name("TIME")
      ->transform(timeout_check());
  app.add_flag("--json", options.json, "Print JSON instead of tables");
  app.footer(kFooter);
  const bool json = std::find(ours.begin(), ours.end(), "--json") != ours.end();
  std::reverse(ours.begin(), ours.end());  // as CLI11 wants them
  try {
    app.parse(ours);
    if (!program.empty()) throw CLI::ParseError("a program goes behind --", kExitUsage);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::string sentence = std::string(error.what()) + "; see collect-conformance --help";
    return refuse({Code::kInvalidArgument, sentence}, kExitUsage, json, std::cout, std::cerr);
  }
  if (!timeout.empty()) options.timeout = std::chrono::milliseconds(std::stoll(timeout));
  return check_peer(options, std::cout, std::cerr);
}

}  // namespace
}  // namespace collect::conformance

int main(int argc, char** argv) {
  using namespace collect;
  int code = 0;
  const Status done = contain([&] { code = conformance::parse_and_check(argc, argv); });
  if (!done.ok()) {
    code = conformance::refuse(done.error(), conformance::kExitNotChecked, false, std::cout,
                               std::cerr);
  }
  if (std::cout.flush()) return code;
  std::cerr << "collect-conformance: cannot write standard output\n";
  return code == 0 ? 1 : code;
}
