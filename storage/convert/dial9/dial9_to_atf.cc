// A dial9 stream into an ATF session: one of our own sessions back as it was (dial9_session.h), or
// what a tokio service says of its workers (dial9_workers.h). Two passes over the mapped stream;
// what is kept is limited, but for the names of functions, of which a session has a table.
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "formats/dial9/read/decoder.h"
#include "storage/convert/conversions.h"
#include "storage/convert/dial9/dial9_session_reader.h"
#include "storage/convert/dial9/dial9_workers.h"
#include "storage/convert/session_builder.h"

namespace collect::convert {
namespace {

constexpr uint64_t kProgressBytes = 1 << 20;

// Looks up, once per schema and sub-stream, what a type of event is to the one who converts it.
template <class Type>
class TypeCache {
 public:
  void clear() { types_.clear(); }
  const Type& of(const dial9::KnownSchema& schema) {
    while (types_.size() <= schema.index()) types_.emplace_back();
    std::optional<Type>& type = types_[schema.index()];
    if (!type) type.emplace(schema);
    return *type;
  }

 private:
  std::vector<std::optional<Type>> types_;
};

// The first pass: whose stream it is, and what it says of the process and its clock.
class Survey : public dial9::Visitor {
 public:
  explicit Survey(Dial9Workers& workers) : workers_(workers) {}

  void on_header(uint64_t) { types_.clear(); }
  void on_event(const dial9::Event& event) {
    const std::string_view name = event.schema().name();
    if (name == dial9_session::kMetadata) {
      is_session_ = is_session_ || Dial9SessionReader::is_head(event);
      read_entries(event);
    } else if (name == dial9_session::kClockSync && !wall_minus_time_ && event.has_timestamp()) {
      const dial9::Value* realtime = event.find("realtime_ns");
      if (realtime != nullptr) wall_minus_time_ = realtime->u64() - event.timestamp_ns();
    } else {
      workers_.see(types_.of(event.schema()), event);
    }
  }
  bool wants_more() const { return !is_session_; }

  bool is_session() const { return is_session_; }
  BuiltProcess process() const {
    BuiltProcess process;
    process.name = name_.empty() ? "dial9" : name_;
    process.pid = pid_;
    // What the recorder calls its time is CLOCK_MONOTONIC, of Linux as far as samples go.
    process.os = atf::Os::kLinux;
    process.clock = atf::ClockType::kBoottime;
    process.start_ns = workers_.first_ns().value_or(0);
    if (wall_minus_time_) process.start_unix_ns = process.start_ns + *wall_minus_time_;
    return process;
  }

 private:
  void read_entries(const dial9::Event& event) {
    const dial9::Value* entries = event.find("entries");
    if (entries == nullptr) return;
    dial9::StringMapView pairs = entries->string_map();
    for (dial9::StringMapView::Pair pair; pairs.next(pair);) {
      if (pair.key == "service_name" || (pair.key == "service" && name_.empty())) {
        name_ = pair.value.substr(0, storage::kMaxTextBytes);
      }
      // Four letters and the process id.
      const size_t dash = pair.value.rfind('-');
      if ((pair.key == "boot_id" || pair.key == "boot-id") && dash != std::string_view::npos) {
        const char* end = pair.value.data() + pair.value.size();
        (void)std::from_chars(pair.value.data() + dash + 1, end, pid_);
      }
    }
  }

  Dial9Workers& workers_;
  TypeCache<WorkerEventType> types_;
  bool is_session_ = false;
  std::string name_;
  uint32_t pid_ = 0;
  std::optional<uint64_t> wall_minus_time_;
};

// The second pass, either way.
template <class Target, class Type>
class Feeder : public dial9::Visitor {
 public:
  Feeder(Target& target, ConvertLog& log, uint64_t all) : target_(target), log_(log), all_(all) {}

  void on_header(uint64_t) { types_.clear(); }
  void on_event(const dial9::Event& event) {
    status_ = target_.add(types_.of(event.schema()), event);
    const uint64_t done = event.range().end;
    if (done - reported_ < kProgressBytes) return;
    reported_ = done;
    log_.progress(done, all_);
  }
  bool wants_more() const { return status_.ok(); }
  const Status& status() const { return status_; }

 private:
  Target& target_;
  ConvertLog& log_;
  const uint64_t all_;
  TypeCache<Type> types_;
  uint64_t reported_ = 0;
  Status status_;
};

template <class Type, class Target>
Status feed(Bytes file, Target& target, ConvertLog& log) {
  Feeder<Target, Type> feeder(target, log, file.size());
  dial9::Decoder decoder;
  const dial9::Decoded decoded = decoder.decode(file, feeder);
  if (!feeder.status().ok()) return feeder.status();
  const auto problem = decoder.finish(file.subspan(decoded.bytes));
  if (problem) {
    log.missing("the stream breaks off: " + dial9::to_error(*problem).message);
    log.missing("bytes behind the last whole frame", file.size() - decoded.bytes);
  }
  return target.finish();
}

}  // namespace

Status dial9_to_atf(Bytes file, SessionBuilder& session, ConvertLog& log) {
  Dial9Workers workers(session, log);
  Survey survey(workers);
  dial9::Decoder decoder;
  const dial9::Decoded decoded = decoder.decode(file, survey);
  if (decoder.sub_streams() == 0) {
    const auto problem = decoder.finish(file.subspan(decoded.bytes));
    return problem ? dial9::to_error(*problem) : Error{Code::kTruncated, "there is no header"};
  }
  if (survey.is_session()) {
    Dial9SessionReader reader(session, log);
    return feed<SessionEventType>(file, reader, log);
  }
  COLLECT_TRY(session.begin(survey.process()));
  return feed<WorkerEventType>(file, workers, log);
}

}  // namespace collect::convert
