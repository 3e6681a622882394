#include "daemon/ctl/store/parts.h"

#include <fmt/core.h>

#include "daemon/upload/commit_object.h"
#include "daemon/upload/download.h"
#include "formats/core/text/figures.h"

namespace collect::ctl {

namespace {

ChosenPart summary_of(const std::string& prefix, const upload::Commit& commit) {
  ChosenPart part{prefix, commit.session,
                  fmt::format("{}-{}", commit.part.collector, commit.part.epoch),
                  commit.files.size()};
  for (const upload::CommittedFile& file : commit.files) {
    if (__builtin_add_overflow(part.bytes, file.bytes, &part.bytes)) part.bytes = UINT64_MAX;
  }
  return part;
}

}  // namespace

std::string unfinished_sentence(uint64_t unfinished) {
  if (unfinished == 0) return {};
  return fmt::format("{}{} not committed: their upload has not ended, or was given up",
                     counted(unfinished, "part"), unfinished == 1 ? " is" : " are");
}

Result<ChosenParts> choose_parts(upload::Store& store, StoreLine& line) {
  line.show("listing");
  const auto listed = upload::list_committed_parts(
      store.client(), store.retries(), store.below().empty() ? upload::kKeyRoot : store.below());
  if (!listed.ok()) return listed.error();
  ChosenParts chosen;
  chosen.unfinished = listed->unfinished;
  for (const std::string& prefix : listed->prefixes) {
    line.show(fmt::format("reading COMMIT {} of {}",
                          chosen.parts.size() + chosen.unreadable.size() + 1,
                          listed->prefixes.size()));
    const auto commit = upload::read_commit(store.client(), store.retries(), prefix);
    if (commit.ok()) {
      chosen.parts.push_back(summary_of(prefix, *commit));
    } else if (upload::is_of_one_part(commit.error())) {
      chosen.unreadable.push_back({prefix, commit.error()});
    } else {
      return commit.error();
    }
  }
  line.end();
  if (chosen.parts.empty() && chosen.unreadable.empty()) {
    const std::string pending = unfinished_sentence(chosen.unfinished);
    return Error{Code::kNotFound, fmt::format("{}: no session{}", store.url_of(store.below()),
                                              pending.empty() ? "" : "; " + pending)};
  }
  return chosen;
}

}  // namespace collect::ctl
