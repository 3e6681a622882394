// Where mutations begin: captures by our own writers, small enough that thousands of them are read
// in a second, with something of everything in them.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "daemon/ctl/convert/convert_command.h"
#include "formats/core/crc32.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/page_codec.h"
#include "storage/convert/session_builder.h"
#include "storage/model/session_types.h"
#include "tests/daemon/ctl/mutated/mutation.h"
#include "tests/fakes/dial9_stream.h"
#include "tests/formats/atf/built_thread.h"
#include "tests/formats/dial9/random_stream.h"
#include "tests/formats/rtc/random_container.h"
#include "tests/formats/wtf/built_file.h"

namespace collect::ctl::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kStart = 1'000'000'000;

Octets file_octets(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Octets(std::istreambuf_iterator<char>(in), {});
}

Capture single(Octets bytes) {
  return {{{kSingleFile, std::move(bytes)}}};
}

Capture session_at(const fs::path& directory) {
  Capture capture;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    capture.files[fs::relative(entry.path(), directory).string()] = file_octets(entry.path());
  }
  return capture;
}

void check(bool holds, const char* what) {
  if (holds) return;
  throw std::runtime_error(std::string("no capture to begin with: ") + what);
}

// A session as storage seals it: three threads, details, a gap, a marker, names.
fs::path built_session(const fs::path& root, atf::Version version) {
  convert::SessionBuilder builder(storage::PosixFs(root.string()), version);
  convert::BuiltProcess process;
  process.name = "app";
  process.executable = "/opt/app";
  process.pid = 42;
  process.start_ns = kStart;
  process.start_unix_ns = kStart * 1'700'000'000;
  process.arch = atf::Arch::kX86_64;
  process.os = atf::Os::kLinux;
  process.clock = atf::ClockType::kBoottime;
  check(builder.begin(process).ok(), "begin");
  storage::ModuleInfo module;
  module.module_id = 1;
  module.path = "/lib/libz.so";
  module.size = 4096;
  builder.add_module(module);
  for (uint32_t thread = 0; thread < 3; ++thread) {
    const auto position =
        builder.add_thread(100 + thread, "worker " + std::to_string(thread), kStart);
    check(position.ok(), "a thread");
    for (uint64_t i = 0; i < 16 + 8 * thread; ++i) {
      const auto kind = i % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn;
      Octets detail;
      if (i % 5 == 0) {
        detail.resize(atf::kFunctionPayloadBytes + i);
        atf::FunctionPayload payload{};
        payload.lr = i;
        const Octets stack(i, static_cast<uint8_t>(i));
        atf::encode_function_payload(payload, stack, detail);
      }
      const uint64_t function =
          builder.function_of("function_" + std::to_string(i / 2 % 5) + "(int)");
      check(builder
                .event(*position, kStart + 1000 * i + thread, function, kind, detail,
                       atf::kDetailLrValid)
                .ok(),
            "an event");
    }
    builder.lost(*position, Lane::kIndex, 7, 1, kStart + 3000, kStart + 4000);
  }
  check(builder.marker(kStart + 2000, "the door opens").ok(), "a marker");
  const auto made = builder.finish(storage::SessionState::kComplete, "exit");
  check(made.ok(), "the session");
  return *made;
}

// Files of a tracer without storage: finished, or cut off.
Capture planned_session(atf::Version version, bool finalize) {
  Capture capture;
  atf::testing::ThreadPlan plan;
  plan.version = version;
  plan.finalize = finalize;
  for (const int n : {0, 1}) {
    plan.detail_every = n == 0 ? 3 : 0;
    plan.thread_id = 4711 + static_cast<uint32_t>(n);
    auto made = build_thread(plan);
    const std::string directory = "thread_" + std::to_string(n);
    capture.files[directory + "/index.atf"] = std::move(made.index);
    if (!made.detail.empty()) capture.files[directory + "/detail.atf"] = std::move(made.detail);
  }
  const std::string manifest = R"json({"threads":[{"id":0,"has_detail":true,"thread_id":4711,
    "name":"main","events":20},{"id":1,"has_detail":false,"thread_id":4712}],"time_start_ns":1000,
    "time_end_ns":1190,"clock_type":3,"format_version":"2.1","state":"recording",
    "modules":[{"module_id":0,"path":"/usr/bin/app"}],
    "symbols":[{"function_id":"0x100","name":"parse(char*)"},{"function_id":257,"name":"f"}]})json";
  capture.files["manifest.json"] = Octets(manifest.begin(), manifest.end());
  return capture;
}

std::vector<Capture> converted(const fs::path& scratch, exports::Target to) {
  std::vector<Capture> captures;
  int number = 0;
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    const fs::path root = scratch / ("root_" + std::to_string(number++));
    ConvertOptions options;
    options.inputs = {built_session(root, version).string()};
    options.to = to;
    options.output = (scratch / "converted").string();
    options.force = true;
    std::ostringstream out, err;
    check(convert(options, out, err) < 2, "a conversion");
    captures.push_back(single(file_octets(options.output)));
    fs::remove_all(root);
    fs::remove(options.output);
  }
  return captures;
}

// Frames of both lanes and versions, raw and encoded.
std::vector<Capture> page_frames() {
  std::vector<Capture> frames;
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    atf::testing::ThreadPlan plan;
    plan.version = version;
    plan.events = 200;
    plan.detail_every = 1;
    plan.finalize = false;
    const auto made = build_thread(plan);
    for (const auto lane : {Lane::kIndex, Lane::kDetail}) {
      const Octets& file = lane == Lane::kIndex ? made.index : made.detail;
      const Octets records(file.begin() + atf::kHeaderBytes, file.end());
      Octets encoded(records.size());
      static wire::ColumnEncoder encoder;
      encoded.resize(encoder.encode(lane, 200, records, encoded));
      for (const bool is_raw : {true, false}) {
        const Octets& sent = is_raw ? records : encoded;
        PageHeader page{};
        page.stream_id = 1;
        page.lane = lane;
        page.codec = is_raw ? Codec::kRaw : Codec::kColumns;
        page.record_count = 200;
        page.raw_bytes = static_cast<uint32_t>(records.size());
        page.bytes_crc32c = crc32c(sent);
        Octets frame(wire::kPagePrefixBytes);
        wire::encode_page_prefix(page, static_cast<uint32_t>(sent.size()), frame_crc, frame.data());
        frame.insert(frame.end(), sent.begin(), sent.end());
        frames.push_back(single(std::move(frame)));
      }
    }
  }
  return frames;
}

std::vector<Capture> sessions(const fs::path& scratch, atf::Version version) {
  const fs::path root = scratch / "root";
  std::vector<Capture> captures = {session_at(built_session(root, version)),
                                   planned_session(version, true), planned_session(version, false)};
  fs::remove_all(root);
  // Parts of one, as files alone.
  captures.push_back(single(captures[1].files["thread_0/index.atf"]));
  captures.push_back(single(captures[1].files["thread_0/detail.atf"]));
  return captures;
}

std::vector<Capture> containers(const fs::path& scratch) {
  std::vector<Capture> captures = converted(scratch, exports::Target::kRtc);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    rtc::testing::Plan plan;
    plan.seed = seed;
    plan.operations = 60;
    plan.max_object_bytes = 600;
    plan.finish = seed % 2 == 0;
    plan.options.geometry = {uint64_t{4096} << (seed % 2), 2048};
    if (seed > 2) plan.options.special = rtc::SpecialFrames::kPrefixed;
    captures.push_back(single(rtc::testing::RandomContainer(plan).make().file));
  }
  return captures;
}

}  // namespace

std::vector<Capture> captures_of(Kind kind, const std::string& scratch) {
  std::vector<Capture> captures;
  switch (kind) {
    case Kind::kAtf1:
      return sessions(scratch, atf::Version::kV1);
    case Kind::kAtf2:
      return sessions(scratch, atf::Version::kV2);
    case Kind::kRtc:
      return containers(scratch);
    case Kind::kWtf:
      captures = converted(scratch, exports::Target::kWtf);
      captures.push_back(single(wtf::testing::build_file(2048)));
      captures.push_back(single(wtf::testing::random_file(7, 40, 2048).bytes));
      return captures;
    case Kind::kWtfJson:
      return converted(scratch, exports::Target::kWtfJson);
    case Kind::kDial9:
      captures = converted(scratch, exports::Target::kDial9);
      captures.push_back(single(fakes::dial9_stream(2, 10)));
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        captures.push_back(single(dial9::testing::random_stream(seed, 2, 10).bytes));
      }
      return captures;
    case Kind::kWirePages:
      return page_frames();
  }
  return captures;
}

}  // namespace collect::ctl::testing
