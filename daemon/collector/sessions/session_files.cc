#include "daemon/collector/sessions/session_files.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/collector/agents/messages.h"
#include "storage/container/packed_lanes.h"
#include "storage/fs/clock.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_files.h"

namespace collect::daemon {
namespace {

class SessionFileReader final : public control::FileReader,
                                public std::enable_shared_from_this<SessionFileReader> {
 public:
  SessionFileReader(TaskThreads& files, std::unique_ptr<storage::File> file, uint64_t size)
      : files_(files), file_(std::move(file)), size_(size) {}

  uint64_t size() const override { return size_; }

  void read(uint64_t offset, size_t bytes, std::function<void(Result<std::string>)> done) override {
    files_.post(
        [self = shared_from_this(), offset, bytes, done] {
          std::string data(bytes, '\0');
          const auto got =
              self->file_->read_at(offset, {reinterpret_cast<uint8_t*>(data.data()), data.size()});
          if (!got.ok()) {
            done(got.error());
            return;
          }
          data.resize(*got);
          done(std::move(data));
        },
        done);
  }

 private:
  TaskThreads& files_;
  const std::unique_ptr<storage::File> file_;  // on the files thread
  const uint64_t size_;
};

api::ConversionEnd conversion_end(const storage::ReplayReport& report) {
  api::ConversionEnd end;
  end.set_missing_left_out(report.missing_left_out);
  for (const storage::MissingInput& missing : report.missing) {
    api::ConversionLoss* loss = end.add_missing();
    loss->set_what(utf8_text(missing.what));
    loss->set_count(missing.count);
  }
  for (const auto& [what, count] : report.left_out) {
    api::ConversionLoss* loss = end.add_left_out();
    loss->set_what(std::string(what));
    loss->set_count(count);
  }
  return end;
}

// What the agent's answer says of the moment.
storage::SnapshotMoment moment_of(const Result<wire::CommandResult>& flushed) {
  storage::SnapshotMoment moment;
  moment.is_whole = flushed.ok() && flushed->ok();
  moment.reason = "a snapshot; the recording continued";
  moment.unix_ns = storage::system_clock().unix_ns();
  if (moment.is_whole) {
    moment.at_ns = flushed->at_ns();
  } else {
    moment.reason += ", and its agent did not ship what it still had: " +
                     (flushed.ok() ? flushed->error() : flushed.error().message);
  }
  return moment;
}

}  // namespace

SessionFiles::SessionFiles(Needs needs, control::Methods& methods) : needs_(std::move(needs)) {
  methods.serve<api::GetManifestRequest, api::Manifest>(
      [this](const auto& request, auto done) { manifest(request.name(), std::move(done)); });
  methods.serve<api::ListFilesRequest, api::ListFilesResponse>(
      [this](const auto& request, auto done) { list(request.name(), std::move(done)); });
  methods.serve<api::SnapshotSessionRequest, api::Session>(
      [this](const auto& request, auto done) { snapshot(request.name(), std::move(done)); });
  methods.serve<api::PackSessionRequest, api::Session>([this](const auto& request, auto done) {
    pack(request.name(), storage::PackWay::kPack, std::move(done));
  });
  methods.serve<api::UnpackSessionRequest, api::Session>([this](const auto& request, auto done) {
    pack(request.name(), storage::PackWay::kUnpack, std::move(done));
  });
  methods.serve<api::DeleteSessionRequest, api::DeleteSessionResponse>(
      [this](const auto& request, auto done) { remove(request.name(), std::move(done)); });
}

// The session with this name, and its directory: the path is made from its name again, and not
// taken from anything that came over a connection.
Result<SessionFiles::Named> SessionFiles::find(const std::string& name) const {
  auto session = needs_.registry.session(name);
  if (!session.ok()) return session.error();
  auto session_path = storage::parse_session_path(needs_.root, session->name);
  if (!session_path) {
    return Error{Code::kNotFound,
                 fmt::format("session \"{}\" has no directory yet", session->name)};
  }
  return Named{std::move(*session), std::move(*session_path)};
}

Result<SessionFiles::Named> SessionFiles::find_sealed(const std::string& name) const {
  auto named = find(name);
  if (!named.ok() || is_over(named->shown.state)) return named;
  return Error{
      Code::kUnsupported,
      fmt::format("session \"{}\" is not sealed yet; StopSession seals it", named->shown.name)};
}

Result<std::string> SessionFiles::directory_of(const ingest::SessionSnapshot& session) const {
  auto named = find(session.name);
  if (!named.ok()) return named.error();
  return std::move(named->session_path.directory);
}

void SessionFiles::manifest(const std::string& name, control::Callback<api::Manifest> done) {
  const auto session = needs_.registry.session(name);
  if (!session.ok()) {
    done(session.error());
    return;
  }
  needs_.files.post(
      [this, shown = *session, done] {
        auto json = storage::read_manifest_json(needs_.fs, shown.directory);
        if (json.ok()) {
          done(manifest_message(shown.name, std::move(json).value()));
        } else {
          done(json.error());
        }
      },
      done);
}

void SessionFiles::list(const std::string& name, control::Callback<api::ListFilesResponse> done) {
  auto named = find(name);
  if (!named.ok()) {
    done(named.error());
    return;
  }
  needs_.files.post(
      [this, named = std::move(*named), done] {
        const auto files = storage::list_session_files(needs_.fs, named.session_path);
        if (!files.ok()) {
          done(files.error());
          return;
        }
        const api::Session shown = to_message(named.shown);
        api::ListFilesResponse response;
        response.set_session(shown.name());
        response.set_state(shown.state());
        for (const storage::SessionFileInfo& info : *files) {
          api::SessionFile* file = response.add_files();
          file->set_path(info.path);
          file->set_size_bytes(info.bytes);
        }
        done(std::move(response));
      },
      done);
}

void SessionFiles::open(const std::string& name, const std::string& path,
                        control::Callback<std::shared_ptr<control::FileReader>> done) {
  auto named = find(name);
  if (!named.ok()) {
    done(named.error());
    return;
  }
  needs_.files.post(
      [this, session_path = std::move(named->session_path), path, done] {
        auto file = storage::open_session_file(needs_.fs, session_path, path);
        if (!file.ok()) {
          done(file.error());
          return;
        }
        const auto size = (*file)->size();
        if (!size.ok()) {
          done(size.error());
          return;
        }
        done(std::shared_ptr<control::FileReader>(
            std::make_shared<SessionFileReader>(needs_.files, std::move(*file), *size)));
      },
      done);
}

// On the converter's thread.
api::Session SessionFiles::show_made(const storage::MadeSession& made,
                                     ingest::SystemTime start_time) {
  const storage::SessionPath& session_path = made.session_path;
  ingest::SessionSnapshot snapshot = ingest::snapshot_of(made.manifest, session_path);
  snapshot.start_time = start_time;  // the first may be shown a moment older than its manifest
  needs_.on_made(snapshot);
  // The names of the first were not looked up yet.
  if (made.manifest.symbols_state == storage::SymbolsState::kPending) {
    needs_.naming.add({session_path.name, session_path.directory, {}});
  }
  const auto shown = needs_.registry.session(session_path.name);
  return shown.ok() ? to_message(*shown) : to_message(snapshot);
}

void SessionFiles::convert(const std::string& name, uint32_t atf_version,
                           control::ConversionProgress progress,
                           control::Callback<api::ConversionEnd> done) {
  auto named = find_sealed(name);
  if (!named.ok()) {
    done(named.error());
    return;
  }
  auto use = needs_.in_use.take(named->shown.name, "is being converted");
  if (!use.ok()) {
    done(use.error());
    return;
  }
  SessionConverter::Job job;
  job.from = std::move(named->session_path);
  job.wanted = static_cast<atf::Version>(atf_version);
  job.progress = std::move(progress);
  job.use = std::move(*use);
  job.done = [this, done = std::move(done),
              start_time = named->shown.start_time](const Result<storage::MadeSession>& converted) {
    if (!converted.ok()) {
      done(converted.error());
      return;
    }
    api::ConversionEnd end = conversion_end(converted->report);
    *end.mutable_session() = show_made(*converted, start_time);
    done(std::move(end));
  };
  needs_.converter.add(std::move(job));
}

Result<ingest::SessionSnapshot> SessionFiles::recording_session(
    const std::string& name, const std::string& consequence) const {
  if (!name.empty()) {
    auto session = needs_.registry.session(name);
    if (!session.ok() || !is_over(session->state)) return session;
    return Error{Code::kUnsupported,
                 fmt::format("session \"{}\" is sealed: it does not change any more, and {}",
                             session->name, consequence)};
  }
  for (ingest::SessionSnapshot& session : needs_.registry.sessions()) {
    if (!is_over(session.state)) return std::move(session);
  }
  return Error{Code::kNotFound, "no session records now"};
}

// First its agent ships what it has, then the session's own thread says what there is.
void SessionFiles::snapshot(const std::string& name, control::Callback<api::Session> done) {
  const auto session = recording_session(name, "needs no snapshot");
  if (!session.ok()) {
    done(session.error());
    return;
  }
  const auto named = find(session->name);
  const auto agent = needs_.registry.agent(std::to_string(session->agent));
  if (!named.ok() || !agent.ok()) {
    done(Error{Code::kUnsupported,
               fmt::format("session \"{}\" has no agent that could be asked for what it holds",
                           session->name)});
    return;
  }
  auto use = needs_.in_use.take(session->name, "is being copied into a snapshot");
  if (!use.ok()) {
    done(use.error());
    return;
  }
  const ingest::ProcessId process = agent->process_id;
  wire::Command flush;
  flush.mutable_flush();
  needs_.ingest.command(
      process, std::move(flush),
      [this, process, named = *named, use = *use,
       done = std::move(done)](const Result<wire::CommandResult>& flushed) {
        SessionConverter::Snapshot snapshot;
        snapshot.moment = moment_of(flushed);
        needs_.ingest.cut(process, [this, named, use, snapshot = std::move(snapshot),
                                    done](Result<storage::SessionCut> cut) mutable {
          if (!cut.ok()) {
            done(cut.error());
            return;
          }
          snapshot.cut = std::move(*cut);
          make_snapshot(named, std::move(snapshot), std::move(use), std::move(done));
        });
      });
}

void SessionFiles::make_snapshot(const Named& named, SessionConverter::Snapshot snapshot,
                                 std::shared_ptr<void> use, control::Callback<api::Session> done) {
  SessionConverter::Job job;
  job.from = named.session_path;
  job.wanted = std::move(snapshot);
  job.progress = [](uint64_t, uint64_t) { return true; };
  job.use = std::move(use);
  job.done = [this, done = std::move(done),
              start_time = named.shown.start_time](const Result<storage::MadeSession>& made) {
    if (made.ok()) {
      done(show_made(*made, start_time));
    } else {
      done(made.error());
    }
  };
  needs_.converter.add(std::move(job));
}

void SessionFiles::pack(const std::string& name, storage::PackWay way,
                        control::Callback<api::Session> done) {
  auto named = find_sealed(name);
  if (!named.ok()) {
    done(named.error());
    return;
  }
  needs_.sealed_work.add_packing(
      named->session_path, way,
      [this, way, shown = named->shown.name,
       done = std::move(done)](const Result<storage::PackReport>& packed) {
        if (!packed.ok()) {
          done(packed.error());
          return;
        }
        needs_.registry.set_packed(shown, way == storage::PackWay::kPack, packed->packed_bytes);
        const auto session = needs_.registry.session(shown);
        if (session.ok()) {
          done(to_message(*session));
        } else {
          done(session.error());
        }
      });
}

// What is refused ends nothing but its packing.
void SessionFiles::remove(const std::string& name,
                          control::Callback<api::DeleteSessionResponse> done) {
  auto named = find_sealed(name);
  if (!named.ok()) {
    done(named.error());
    return;
  }
  needs_.files.post(
      [this, named = std::move(*named), done]() mutable {
        const std::string& name_shown = named.shown.name;
        constexpr char kWhat[] = "is being removed";
        auto use = needs_.in_use.take(name_shown, kWhat);
        if (!use.ok()) {
          needs_.sealed_work.end_packing(name_shown);
          use = needs_.in_use.take(name_shown, kWhat);
        }
        if (!use.ok()) {
          done(use.error());
          return;
        }
        needs_.naming.forget(name_shown);
        needs_.sealed_work.forget(name_shown);
        const auto removed = storage::remove_session(needs_.fs, named.session_path);
        use->reset();
        if (!removed.ok() && removed.code() != Code::kNotFound) {
          done(removed.error());
          return;
        }
        needs_.registry.remove_session(name_shown);
        api::DeleteSessionResponse response;
        response.set_session(to_message(named.shown).name());
        if (removed.ok()) {
          response.set_removed_bytes(removed->bytes);
          response.set_removed_files(removed->files);
        }
        done(std::move(response));
      },
      done);
}

}  // namespace collect::daemon
