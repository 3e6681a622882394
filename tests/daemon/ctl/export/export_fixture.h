// Sessions that are exported, and what programs that are not ours make of the files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ctl/convert/convert_command.h"
#include "storage/model/session_layout.h"
#include "storage/model/switch_times.h"
#include "tests/child/child_process.h"
#include "tests/daemon/ctl/check/session.h"
#include "tests/daemon/ctl/export/part_forms.h"

namespace collect::ctl::testing {

using nlohmann::json;

class ExportTest : public OfflineTest {
 protected:
  static constexpr const char* kSymbols =
      R"("symbols":[{"function_id":"0xa","name":"a","file":"src/a.c","line":12},{"function_id":"0xb","name":"b"},
                    {"function_id":"0xc","name":"c"}])";

  // `more`: further members, each with a comma behind it.
  void write_manifest(const std::string& more, const std::string& threads) {
    write_text(session_ / "manifest.json",
               R"({"state":"complete","process":{"name":"app","pid":42},)" + more + kSymbols +
                   R"(,"threads":)" + threads + "}");
  }
  // Thread 0, "main": a 1000..11000, in it b 2000..9000, in b c 3000..4000; it waits 5000..8000, in
  // b. Thread 1, "worker": c 1000..20000. The process is stopped 10000..10500. A marker at 2500.
  void write_stalled_session() {
    write_thread(0, index_of({{1000, kCall, 0xA},
                              {2000, kCall, 0xB},
                              {3000, kCall, 0xC},
                              {4000, kReturn, 0xC},
                              {9000, kReturn, 0xB},
                              {11000, kReturn, 0xA}},
                             100));
    write_thread(1, index_of({{1000, kCall, 0xC}, {20000, kReturn, 0xC}}, 101));
    write_manifest(
        R"("markers":[{"at_ns":2500,"text":"here"}],
        "stalls":[{"kind":"stopped","first_ns":10000,"last_ns":10500},
                  {"kind":"page_wait","first_ns":5000,"last_ns":8000,"thread":0}],)",
        R"([{"id":0,"name":"main","ended":true},{"id":1,"name":"worker","ended":true}])");
  }
  // The same, and when main was off the processor.
  void write_waiting_session() {
    write_stalled_session();
    add_switches({storage::make_stall(storage::StallKind::kBlocked, 3200, 3700),
                  storage::make_stall(storage::StallKind::kPreempted, 8100, 8300),
                  storage::make_stall(storage::StallKind::kBlocked, 9200, 9400)});
  }
  // Of thread 0.
  void add_switches(std::vector<storage::Stall> switches) {
    for (storage::Stall& one : switches) one.thread = 0;
    const std::vector<uint8_t> frames = storage::encode_switches(switches);
    write_text(session_ / storage::kSwitchesFile, {frames.begin(), frames.end()});
    json manifest = json::parse(std::ifstream(session_ / "manifest.json"));
    manifest["process"]["switches"] = true;
    storage::StallTotals sums;
    for (const storage::Stall& one : switches) sums.add(one);
    json& thread = manifest["threads"][0];
    thread["switches"] = sums.switches;
    thread["blocked_ns"] = sums.blocked_ns;
    thread["preempted_ns"] = sums.preempted_ns;
    write_text(session_ / "manifest.json", manifest.dump());
  }
  // One thread with a loss before event `before_seq`.
  void write_lossy_session(const std::vector<Step>& steps, int before_seq, uint64_t first_ns,
                           uint64_t last_ns) {
    write_thread(0, index_of(steps, 100));
    write_manifest(R"("gaps":[{"thread":0,"lane":"index","before_seq":)" +
                       std::to_string(before_seq) + R"(,"lost":5,"numbered_lost":5,"first_ns":)" +
                       std::to_string(first_ns) + R"(,"last_ns":)" + std::to_string(last_ns) +
                       R"(,"reasons":["ring_full"]}],)",
                   R"([{"id":0,"name":"main","ended":true,"lost_events":5}])");
  }

  int run(exports::Target to, const exports::ExportSelection& selection = {},
          std::vector<std::string> inputs = {}) {
    ConvertOptions options;
    options.inputs = inputs.empty() ? std::vector<std::string>{session_.string()} : inputs;
    options.to = to;
    options.output = output();
    const bool is_directory = std::filesystem::is_directory(output());
    if (is_directory != (to == exports::Target::kParquet)) std::filesystem::remove_all(output());
    options.selection = selection;
    options.json = true;
    options.force = true;
    out_.str("");
    err_.str("");
    const int code = convert(options, out_, err_);
    // As words, too: an error is where the report would.
    if (out_.str().find("\"error\":{") != std::string::npos) {
      options.json = false;
      out_.str("");
      err_.str("");
      EXPECT_EQ(convert(options, out_, err_), code);
    }
    report_ = code == 2 ? json() : json::parse(out_.str(), nullptr, false);
    return code;
  }
  std::string output() const { return (root_ / "out").string(); }
  std::string written() const {
    std::ifstream in(output(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // What `command FILE` prints, as JSON; null where it fails.
  json read_by(const std::string& command) {
    const child::Ending ending = child::run_shell(command + " '" + output() + "'");
    EXPECT_TRUE(ending.exited_with(0)) << command;
    return json::parse(ending.output, nullptr, false);
  }
  // Through protoc and an importer by upstream's rules.
  json imported() { return read_by("python3 " FORMAT_TESTS "/perfetto/import_trace.py"); }
  json profile() { return read_by("python3 " FORMAT_TESTS "/pprof/read_profile.py"); }

  // ---- whole files, against expected/NAME.json; COLLECT_WRITE_EXPORTS=1 writes them there

  void expect_same(const std::string& name, const json& got) {
    const std::string path = std::string(EXPORT_EXPECTED "/") + name + ".json";
    if (std::getenv("COLLECT_WRITE_EXPORTS") != nullptr) {
      write_text(path, got.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
    }
    std::ifstream file(path);
    const json expected = json::parse(file, nullptr, false);
    EXPECT_EQ(got, expected) << json::diff(expected, got).dump(1)
                             << "\nif that is right: cmake --build BUILD --target committed-texts";
  }
  json page() const {
    const std::string html = written();
    const std::string begin = "<script id=\"data\" type=\"application/json\">";
    const size_t at = html.find(begin) + begin.size();
    return json::parse(html.substr(at, html.find("</script", at) - at), nullptr, false);
  }
  // The file and what the command says of it; the file's place and size are none of it.
  json all_of(exports::Target to, const exports::ExportSelection& selection = {},
              const std::vector<std::string>& inputs = {}) {
    const int code = run(to, selection, inputs);
    json all = {{"code", code},
                {"said", err_.str()},
                {"left_out", report_["left_out"]},
                {"counts", report_["counts"]}};
    switch (to) {
      case exports::Target::kPerfetto:
        all["file"] = imported();
        all["file"].erase("bytes");  // what zlib makes of it
        break;
      case exports::Target::kPprof:
        all["file"] = profile();
        break;
      case exports::Target::kParquet:
        break;  // parquet_test.cc has what DuckDB finds in it
      case exports::Target::kHtml:
        all["file"] = page();
        shorten(all["file"]);
        break;
      default:
        // Text of a format that is no JSON stays text.
        all["file"] = json::parse(written(), nullptr, false);
        if (all["file"].is_discarded()) all["file"] = written();
    }
    return without_root(all);
  }
  // The sessions lie in another directory each time.
  json without_root(const json& all) const {
    std::string text = all.dump(-1, ' ', false, json::error_handler_t::replace);
    for (size_t at = 0; (at = text.find(root_.string(), at)) != std::string::npos;) {
      text.replace(at, root_.string().size(), "ROOT");
    }
    return json::parse(text, nullptr, false);
  }
  // {place: count} in the place of hundreds of zeroes.
  static void shorten(json& page) {
    for (json& thread : page["threads"]) {
      json counts = {{"parts", thread["activity"].size()}};
      for (size_t i = 0; i < thread["activity"].size(); ++i) {
        if (thread["activity"][i] != 0) counts[std::to_string(i)] = thread["activity"][i];
      }
      thread["activity"] = counts;
    }
  }
  // Every format of viewers, each against expected/FORMAT + `suffix`.
  void expect_all_formats(const std::string& suffix, const exports::ExportSelection& selection = {},
                          const std::vector<std::string>& inputs = {}) {
    exports::for_each_view([&](exports::Target to) {
      const std::string name(name_of(to));
      SCOPED_TRACE(name);
      expect_same(name + suffix, all_of(to, selection, inputs));
    });
  }

  // A part of a session, which the formats have from the same walks: Perfetto's file, that of
  // pprof, and those of `more` are compared whole; the others have to say the same.
  void expect_part(const std::string& suffix, const exports::ExportSelection& selection,
                   const std::vector<std::string>& inputs, const std::set<exports::Target>& more) {
    static const std::set<exports::Target> alike = {
        exports::Target::kChrome, exports::Target::kSpeedscope, exports::Target::kFolded,
        exports::Target::kHtml};
    std::map<exports::Target, json> all;
    exports::for_each_view([&](exports::Target to) {
      const std::string name(name_of(to));
      SCOPED_TRACE(name);
      all[to] = all_of(to, selection, inputs);
      if (!alike.contains(to) || more.contains(to)) expect_same(name + suffix, all[to]);
    });
    const json& perfetto = all[exports::Target::kPerfetto]["file"];
    const json& chrome = all[exports::Target::kChrome]["file"];
    EXPECT_EQ(slices_of_chrome(chrome), slices_of_perfetto(perfetto, false));
    EXPECT_EQ(rates_of_chrome(chrome), rates_of_perfetto(perfetto));
    EXPECT_EQ(
        slices_of_speedscope(all[exports::Target::kSpeedscope]["file"], origin_of_chrome(chrome)),
        slices_of_perfetto(perfetto, true));
    const json& profile = all[exports::Target::kPprof]["file"];
    EXPECT_EQ(all[exports::Target::kFolded]["file"], folded_of_profile(profile, inputs.size() > 1));
    EXPECT_EQ(stacks_of_page(all[exports::Target::kHtml]["file"]), stacks_of_profile(profile));
    const auto expect_report = [&](exports::Target one, exports::Target other,
                                   const std::set<std::string>& but) {
      SCOPED_TRACE(std::string(name_of(one)));
      json left_out = all[one]["left_out"];
      for (const std::string& kind : but) left_out.erase(kind);
      EXPECT_EQ(left_out, all[other]["left_out"]);
      EXPECT_EQ(all[one]["code"], all[other]["code"]);
      EXPECT_EQ(all[one]["counts"], all[other]["counts"]);
    };
    expect_report(exports::Target::kChrome, exports::Target::kPerfetto,
                  {"source lines of functions"});
    expect_report(exports::Target::kSpeedscope, exports::Target::kPerfetto,
                  {"markers", "notes of calls: registers, stack bytes, how a call ended",
                   "stalls that were joined: their times are not known one by one"});
    expect_report(exports::Target::kFolded, exports::Target::kPprof, {"source lines of functions"});
    expect_report(exports::Target::kPprof, exports::Target::kHtml, {"markers"});
  }

  json report_;
};

}  // namespace collect::ctl::testing
