// The last step of a session's files, on the sealing thread; the writer thread only drops items
// from begin_seal() on.
#include <filesystem>
#include <utility>

#include "daemon/ingest/session_pipe.h"
#include "daemon/ingest/writer_pool.h"

namespace collect::ingest {

// Others may have taken the session's reserve too: then it is sealed when there is room again.
void SessionPipe::finish_seal(const SessionSeal& seal) {
  SessionReport::Sealed sealed{seal.state, seal.reason};
  SealOutcome outcome = SealOutcome::kWhole;
  if (writer_) {
    outcome = seal_files(sealed);
  } else if (!recover_directory_.empty()) {
    outcome = recover(sealed);
  }
  const bool again = sealed.held_up || outcome == SealOutcome::kTryAgain;
  const bool waits =
      again && world_.writers->schedule_seal_again(
                   principal(), [self = shared_from_this(), seal] { self->finish_seal(seal); });
  // This machine was out of something: nothing became of the session yet, so nothing is told.
  if (waits && outcome == SealOutcome::kTryAgain) return;
  sealed.held_up = waits;
  if (writer_) sealed.health = writer_->health();
  const bool whole = outcome == SealOutcome::kWhole;
  if (whole && writer_) {
    remember_complete(sealed.state);
    if (sealed.state == storage::SessionState::kComplete) sealed.state = sealed.health.state;
  }
  if (!sealed.held_up) {
    writer_.reset();
    charges_.hold_open_files(0);
  }
  // The first outcome is told, and then that it is whole after all. Where it was removed meanwhile,
  // what was told stands.
  if (std::exchange(told_sealed_, true) && !whole) return;
  news_.sealed = std::move(sealed);
  publish();
}

// So that the agent is told again, when it did not hear of the seal.
void SessionPipe::remember_complete(storage::SessionState state) {
  if (state != storage::SessionState::kComplete) return;
  const storage::SessionIdentity& identity = writer_->identity();
  storage::SessionPlace place;
  place.pid = identity.pid;
  place.name = writer_->name();
  place.directory = writer_->directory();
  world_.completed->add(identity.process_id, identity.recording, place);
}

// kWhole: all of it is on disk now.
SessionPipe::SealOutcome SessionPipe::seal_files(SessionReport::Sealed& sealed) {
  const Status status = writer_->seal(sealed.state, sealed.reason);
  count_totals();
  if (writer_->sealed()) have_named(writer_->directory(), writer_->functions(), sealed);
  if (status.ok()) return SealOutcome::kWhole;
  if (status.code() == Code::kExhausted && !writer_->sealed()) return SealOutcome::kTryAgain;
  sealed.state = storage::SessionState::kFailed;
  const std::string why = to_string(status.error());
  if (sealed.reason.find(why) == std::string::npos) sealed.reason += "; sealing failed: " + why;
  sealed.held_up = !writer_->sealed() && status.code() == Code::kNoSpace;
  return writer_->sealed() ? SealOutcome::kWhole : SealOutcome::kNotWhole;
}

SessionPipe::SealOutcome SessionPipe::recover(SessionReport::Sealed& sealed) {
  const auto recovered = storage::recover_session(*world_.fs, *world_.options, recover_directory_);
  if (!recovered.ok() && recovered.code() == Code::kExhausted) return SealOutcome::kTryAgain;
  if (!recovered.ok()) {
    sealed = {storage::SessionState::kFailed, to_string(recovered.error()),
              recovered.code() == Code::kNoSpace};
    sealed.health =
        storage::health_of(storage::HealthFacts{.state = sealed.state, .reason = sealed.reason});
    return SealOutcome::kNotWhole;
  }
  sealed = {recovered->state, recovered->reason};
  sealed.health = recovered->health;
  counted_ = recovered->totals;
  have_named(recover_directory_, recovered->functions, sealed);
  return SealOutcome::kWhole;
}

// Names come afterwards: they can wait, and a file that a peer named is not to hold the seal up.
void SessionPipe::have_named(const std::string& directory, std::vector<uint64_t> functions,
                             SessionReport::Sealed& sealed) {
  if (functions.empty() || !world_.options->symbolize || world_.observer == nullptr) return;
  const std::filesystem::path path = directory;
  const std::string name = path.parent_path().filename().string() + "/" + path.filename().string();
  if (world_.observer->to_be_named(name, directory, std::move(functions))) {
    sealed.symbols = storage::SymbolsState::kPending;
  }
}

}  // namespace collect::ingest
