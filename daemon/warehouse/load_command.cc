#include "daemon/warehouse/load_command.h"

#include <fmt/core.h>

#include <memory>
#include <ostream>
#include <utility>

#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/upload/commit_object.h"
#include "daemon/upload/store.h"
#include "daemon/warehouse/part_loader.h"
#include "daemon/warehouse/remote_parts.h"
#include "formats/core/text/figures.h"
#include "formats/core/text/printable.h"
#include "storage/fs/scratch_directory.h"
#include "storage/select/recordings.h"

namespace collect::warehouse {
namespace {

constexpr int kExitRemarks = 1;
constexpr int kExitFailed = 2;

EventRows wanted_events(const std::string& word) {
  if (word == event_rows_name(EventRows::kLoad)) return EventRows::kLoad;
  return word == event_rows_name(EventRows::kNone) ? EventRows::kNone : EventRows::kReference;
}

// One run of `load`.
class Load {
 public:
  Load(const LoadArguments& arguments, ClickHouseSettings settings, std::ostream& out,
       std::ostream& err)
      : arguments_(arguments),
        out_(out),
        err_(err),
        client_(std::move(settings), pauses_, [this](const Error& error) { remark(error); }) {}

  int run() {
    select::Recordings here;
    for (const std::string& path : arguments_.paths) {
      const Status done = upload::is_store_url(path) ? load_bucket(path) : add_sessions(path, here);
      if (!done.ok()) return refuse(done.error());
    }
    for (auto& [key, parts] : here.parts()) {
      std::vector<PartLocation> places;
      for (storage::SessionPart& part : parts) places.push_back({part, part.directory});
      const Status done = load_session(std::move(places));
      if (!done.ok()) return refuse(done.error());
    }
    if (is_json()) out_ << ctl::json_line(document_);
    return has_remarks_ ? kExitRemarks : 0;
  }

 private:
  bool is_json() const { return arguments_.json; }

  // Each of several attempts fails in the same way, as a rule: that is printed once.
  void remark(const Error& error) {
    if (std::exchange(last_remark_, error.message) == error.message) return;
    err_ << "collect-load: trying again: " << printable_sentence(error.message) << "\n";
  }

  int refuse(const Error& error) {
    return ctl::Answer{is_json(), out_, err_, kLoaderName}.refuse(error, kExitFailed);
  }

  Status add_sessions(const std::string& path, select::Recordings& recordings) {
    const auto sessions = select::sessions_of(path);
    if (!sessions.ok()) return sessions.error();
    for (const std::string& session : *sessions) {
      const Status added = recordings.add(session);
      if (added.ok()) continue;
      say({.place = session, .outcome = LoadOutcome::kFailed, .problem = added.error().message});
    }
    return {};
  }

  Status load_bucket(const std::string& uri) {
    auto remote = RemoteParts::open(uri, [this](const Error& error) { remark(error); });
    if (!remote.ok()) return remote.error();
    const auto sessions = (*remote)->sessions();
    if (!sessions.ok()) return sessions.error();
    if (sessions->empty()) return Error{Code::kNotFound, uri + ": no committed part is there"};
    for (const RemoteSession& session : *sessions) COLLECT_TRY(load_remote(**remote, session));
    return {};
  }

  // An error that is of this part alone is printed, and the others are loaded.
  Status say_failed(const std::string& place, const Error& error) {
    if (!upload::is_of_one_part(error)) return error;
    say({.place = place, .outcome = LoadOutcome::kFailed, .problem = error.message});
    return {};
  }

  Status load_remote(RemoteParts& remote, const RemoteSession& session) {
    std::vector<std::string> parts;
    std::vector<PartIdentity> identities;
    for (const std::string& part : session.parts) {
      auto identity = remote.identify(part);
      if (!identity.ok()) {
        COLLECT_TRY(say_failed(remote.place_of(part), identity.error()));
        continue;
      }
      parts.push_back(part);
      identities.push_back(std::move(*identity));
    }
    if (parts.empty()) return {};
    PartLoader loader(client_, loader_settings(""));
    const auto known = loader.known(identities.front().session);
    if (!known.ok()) return known.error();
    if (loader.has_all(*known, identities)) {
      for (size_t i = 0; i < identities.size(); ++i) {
        say({.identity = identities[i],
             .place = remote.place_of(parts[i]),
             .outcome = LoadOutcome::kPresent});
      }
      return {};
    }
    return load_downloaded(remote, parts);
  }

  Status load_downloaded(RemoteParts& remote, const std::vector<std::string>& parts) {
    auto scratch = storage::make_scratch_directory("collectctl_load");
    if (!scratch.ok()) return scratch.error();
    // Two collectors may have given their parts the same name: a root for each.
    std::vector<std::unique_ptr<storage::PosixFs>> files;
    std::vector<PartLocation> places;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string root = fmt::format("{}/{}", scratch->path(), i);
      files.push_back(std::make_unique<storage::PosixFs>(root));
      COLLECT_TRY(files.back()->make_directories(root));
      const auto directory = remote.download(parts[i], parts.size() > 1, *files.back(), root);
      auto manifest = directory.ok() ? storage::read_manifest(*files.back(), *directory)
                                     : Result<storage::Manifest>(directory.error());
      if (!manifest.ok()) {
        COLLECT_TRY(say_failed(remote.place_of(parts[i]), manifest.error()));
        continue;
      }
      places.push_back(
          {{files.back().get(), *directory, std::move(*manifest)}, remote.place_of(parts[i])});
    }
    return places.empty() ? Status() : load_session(std::move(places));
  }

  LoadSettings loader_settings(std::string scratch) const {
    return {wanted_events(arguments_.events), arguments_.again, std::move(scratch)};
  }

  Status load_session(std::vector<PartLocation> places) {
    auto scratch = storage::make_scratch_directory("collectctl_load");
    if (!scratch.ok()) return scratch.error();
    PartLoader loader(client_, loader_settings(scratch->path()));
    const auto loaded = loader.load(std::move(places));
    if (!loaded.ok()) return loaded.error();
    for (const LoadedPart& part : *loaded) say(part);
    return {};
  }

  void say(const LoadedPart& part) {
    const bool is_failed = part.outcome == LoadOutcome::kFailed;
    const size_t inexact = part.counts.inexact_threads.size();
    const bool lacks_events = inexact != 0 && wanted_events(arguments_.events) == EventRows::kLoad;
    has_remarks_ = has_remarks_ || is_failed || lacks_events || !part.remark.empty();
    if (is_json()) return add_json(part);
    const std::string place = printable_sentence(part.place);
    if (is_failed) {
      err_ << "collect-load: " << place << ": " << printable_sentence(part.problem) << "\n";
    } else if (part.outcome == LoadOutcome::kPresent) {
      out_ << place << ": was loaded before\n";
    } else {
      out_ << place << ": " << with_thousands(part.counts.events) << " events, "
           << with_thousands(part.counts.second_rows) << " function seconds";
      if (part.counts.event_rows != 0) {
        out_ << ", " << with_thousands(part.counts.event_rows) << " rows of events";
      }
      out_ << "\n";
    }
    out_.flush();
    if (lacks_events) {
      err_ << "collect-load: " << place << ": the events of " << counted(inexact, "thread")
           << " were left out: their gaps were joined, so their numbers are not known\n";
    }
    if (!part.remark.empty()) {
      err_ << "collect-load: " << place << ": " << printable_sentence(part.remark) << "\n";
    }
  }

  void add_json(const LoadedPart& part) {
    static constexpr const char* kOutcomes[] = {"loaded", "present", "failed"};
    ctl::Json one = ctl::Json::object();
    ctl::add_text(one, "session", part.identity.session);
    ctl::add_text(one, "part", part.identity.part);
    ctl::add_text(one, "place", part.place);
    one["outcome"] = kOutcomes[static_cast<size_t>(part.outcome)];
    if (part.outcome == LoadOutcome::kLoaded) {
      one["events"] = part.counts.events;
      one["event_rows"] = part.counts.event_rows;
      one["second_rows"] = part.counts.second_rows;
      one["inexact_threads"] = part.counts.inexact_threads.size();
    }
    ctl::add_text(one, "problem", part.problem);
    ctl::add_text(one, "remark", part.remark);
    document_["parts"].push_back(std::move(one));
  }

  const LoadArguments& arguments_;
  std::ostream& out_;
  std::ostream& err_;
  upload::SleepingPauses pauses_;
  ClickHouseClient client_;
  ctl::Json document_ = [] {
    ctl::Json document = ctl::json_document();
    document["parts"] = ctl::Json::array();
    return document;
  }();
  bool has_remarks_ = false;
  std::string last_remark_;
};

class StreamSink final : public ByteSink {
 public:
  explicit StreamSink(std::ostream& out) : out_(out) {}
  Status write(Bytes bytes) override {
    out_.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return out_ ? Status() : Status(Error{Code::kIo, "standard output"});
  }

 private:
  std::ostream& out_;
};

}  // namespace

int load(const LoadArguments& arguments, std::ostream& out, std::ostream& err) {
  auto settings = clickhouse_settings(arguments.server, arguments.database);
  if (!settings.ok()) {
    return ctl::Answer{arguments.json, out, err, kLoaderName}.refuse(settings.error(), kExitFailed);
  }
  return Load(arguments, std::move(*settings), out, err).run();
}

int query(const LoadArguments& arguments, std::ostream& out, std::ostream& err) {
  const ctl::Answer answer{false, out, err, kLoaderName};
  auto settings = clickhouse_settings(arguments.server, arguments.database);
  if (!settings.ok()) return answer.refuse(settings.error(), kExitFailed);
  upload::SleepingPauses pauses;
  ClickHouseClient client(std::move(*settings), pauses, [](const Error&) {});
  StreamSink sink(out);
  const Status done = client.query(arguments.query, arguments.format, sink);
  out.flush();
  return done.ok() ? 0 : answer.refuse(done.error(), kExitFailed);
}

}  // namespace collect::warehouse
