// Streams and files that are written event by event, for tests of what becomes of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/dial9/writer.h"
#include "formats/wtf/binary/writer.h"
#include "storage/convert/dial9/dial9_session.h"
#include "tests/daemon/ctl/convert/convert_fixture.h"

namespace collect::ctl::testing {

// Polls of a tokio service.
struct ServiceStream {
  ServiceStream() {
    const auto number = dial9::FieldType::kVarint;
    start = *out.define(
        {0, "PollStart", true, {{"worker_id", number}, {"spawn_loc", dial9::FieldType::kString}}});
    end = *out.define({1, "PollEnd", true, {{"worker_id", number}}});
  }
  void begin_poll(uint64_t ns, uint64_t worker, std::string_view where) {
    out.begin_event(start, ns);
    out.put_varint(worker);
    out.put_string(where);
    EXPECT_TRUE(out.end_event());
  }
  void end_poll(uint64_t ns, uint64_t worker) {
    out.begin_event(end, ns);
    out.put_varint(worker);
    EXPECT_TRUE(out.end_event());
  }

  dial9::Encoder out;
  dial9::EventType start, end;
};

// A session of ours in a dial9 stream (dial9_session.h).
class OurStream {
 public:
  OurStream() {
    const auto number = dial9::FieldType::kVarint;
    const auto text = dial9::FieldType::kString;
    define(metadata, convert::dial9_session::kMetadata,
           {{"entries", dial9::FieldType::kStringMap}});
    define(module, convert::dial9_session::kModule,
           {{"module", number},
            {"path", text},
            {"build_id", dial9::FieldType::kBytes},
            {"base_address", number},
            {"size", number},
            {"unloaded_ns", number}});
    define(thread, convert::dial9_session::kThread,
           {{"thread", number}, {"thread_id", number}, {"name", text}});
    define(call, convert::dial9_session::kCall, {{"thread", number}, {"function", number}});
    define(detail, convert::dial9_session::kDetail,
           {{"thread", number},
            {"kind", number},
            {"flags", number},
            {"payload", dial9::FieldType::kBytes}});
    define(gap, convert::dial9_session::kGap,
           {{"thread", number},
            {"lane", number},
            {"lost", number},
            {"reasons", number},
            {"first_ns", number},
            {"last_ns", number}});
    define(marker, convert::dial9_session::kMarker, {{"text", text}});
    define(other, "Other", {{"n", number}});
  }
  void head(std::vector<dial9::StringPair> entries = {}) {
    entries.push_back({convert::dial9_session::kSessionKey, "1"});
    out.begin_event(metadata, 100);
    out.put_string_map(entries);
    end();
  }
  // Numbers alone.
  void put(dial9::EventType type, uint64_t ns, std::initializer_list<uint64_t> values) {
    out.begin_event(type, ns);
    for (const uint64_t value : values) out.put_varint(value);
    end();
  }
  void put_detail(uint64_t ns, uint64_t n, uint64_t kind, uint64_t flags, const Octets& payload) {
    out.begin_event(detail, ns);
    for (const uint64_t value : {n, kind, flags}) out.put_varint(value);
    out.put_bytes(payload);
    end();
  }
  void put_module(uint64_t id, std::string_view path, const Octets& build_id) {
    out.begin_event(module, 600);
    out.put_varint(id);
    out.put_string(path);
    out.put_bytes(build_id);
    for (int i = 0; i < 3; ++i) out.put_varint(0);
    end();
  }
  void put_thread(uint64_t n, uint64_t thread_id, std::string_view name) {
    out.begin_event(thread, 700);
    out.put_varint(n);
    out.put_varint(thread_id);
    out.put_string(name);
    end();
  }

  dial9::Encoder out;
  dial9::EventType metadata, module, thread, call, detail, gap, marker, other;

 private:
  void define(dial9::EventType& type, std::string_view name, std::vector<dial9::Field> fields) {
    type = *out.define({next_++, std::string(name), true, std::move(fields)});
  }
  void end() { EXPECT_TRUE(out.end_event()) << to_text(out.refusal()); }

  uint16_t next_ = 256;
};

// A WTF-trace with one zone, which is set.
class WtfStream {
 public:
  explicit WtfStream(const wtf::FileHeader& header = {}) : writer_(sink_, {.pair_scopes = false}) {
    EXPECT_TRUE(writer_.begin(header).ok());
    zone_ = *writer_.create_zone("zone");
    EXPECT_TRUE(writer_.set_zone(zone_).ok());
  }
  wtf::Writer* operator->() { return &writer_; }
  Octets take() {
    EXPECT_TRUE(writer_.finish().ok());
    return sink_.bytes();
  }

 private:
  VectorSink sink_;
  wtf::Writer writer_;
  uint16_t zone_ = 0;
};

}  // namespace collect::ctl::testing
