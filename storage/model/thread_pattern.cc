#include "storage/model/thread_pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "formats/core/text/glob.h"

namespace collect::storage {
namespace {

constexpr std::string_view kDirectory = "thread_";
constexpr std::string_view kName = "name=";
constexpr size_t kMaxListed = 8;  // threads in a message

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// "4711 (thread_0, main)".
std::string described(const ThreadIdentity& thread) {
  std::string more = thread.n ? std::string(kDirectory) + std::to_string(*thread.n) : "";
  if (!thread.name.empty()) more += (more.empty() ? "" : ", ") + thread.name;
  if (!thread.thread_id) return more;
  return std::to_string(*thread.thread_id) + (more.empty() ? "" : fmt::format(" ({})", more));
}

Error no_thread(const std::string& word, const std::vector<ThreadIdentity>& threads) {
  std::string message = fmt::format("no thread is \"{}\"; ", word);
  if (threads.empty()) return {Code::kNotFound, message + "there are no threads"};
  message += "there is ";
  for (size_t i = 0; i < std::min(threads.size(), kMaxListed); ++i) {
    message += (i == 0 ? "" : ", ") + described(threads[i]);
  }
  if (threads.size() > kMaxListed) {
    message += fmt::format(" and {} more", threads.size() - kMaxListed);
  }
  return {Code::kNotFound, std::move(message)};
}

}  // namespace

Result<ThreadPattern> ThreadPattern::parse(const std::string& word) {
  ThreadPattern pattern(word);
  const std::string_view text = word;
  if (text.starts_with(kName) && text.size() > kName.size()) {
    pattern.name_ = text.substr(kName.size());
    return pattern;
  }
  if (text.starts_with(kDirectory)) {
    pattern.n_ = number(text.substr(kDirectory.size()));
  } else {
    pattern.thread_id_ = number(text);
  }
  if (pattern.n_ || pattern.thread_id_) return pattern;
  return Error{
      Code::kInvalidArgument,
      fmt::format("\"{}\" is no thread: say the operating system's id, thread_N or name=PATTERN",
                  word)};
}

bool ThreadPattern::means(const ThreadIdentity& thread) const {
  if (n_) return thread.n == n_;
  if (thread_id_) return thread.thread_id == thread_id_;
  return matches_glob(name_, thread.name);
}

Result<std::vector<size_t>> select_threads(const std::vector<std::string>& words,
                                           const std::vector<ThreadIdentity>& threads) {
  std::vector<bool> wanted(threads.size(), false);
  for (const std::string& word : words) {
    const auto pattern = ThreadPattern::parse(word);
    if (!pattern.ok()) return pattern.error();
    bool found = false;
    for (size_t i = 0; i < threads.size(); ++i) {
      if (!pattern->means(threads[i])) continue;
      wanted[i] = true;
      found = true;
    }
    if (!found) return no_thread(word, threads);
  }
  std::vector<size_t> places;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) places.push_back(i);
  }
  return places;
}

}  // namespace collect::storage
