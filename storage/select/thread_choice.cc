#include "storage/select/thread_choice.h"

#include "storage/model/thread_pattern.h"

namespace collect::select {

Result<std::vector<uint32_t>> chosen_threads(const std::vector<std::string>& words,
                                             const read::Trace& trace,
                                             const read::SessionManifest& manifest) {
  std::vector<uint32_t> chosen;
  if (words.empty()) return chosen;
  std::vector<storage::ThreadIdentity> threads;
  const atf::SessionReader session(trace.files());
  for (const atf::SessionThread& thread : session.threads()) {
    storage::ThreadIdentity identity{thread.n, std::nullopt, ""};
    if (thread.index) identity.thread_id = thread.index->header().thread_id;
    if (const read::ManifestThread* said = manifest.thread(thread.n); said != nullptr) {
      if (said->says(storage::kThreadIdKey)) identity.thread_id = said->thread_id;
      identity.name = said->name;
    }
    threads.push_back(std::move(identity));
  }
  const auto places = storage::select_threads(words, threads);
  if (!places.ok()) return places.error();
  for (const size_t place : *places) chosen.push_back(*threads[place].n);
  return chosen;
}

}  // namespace collect::select
