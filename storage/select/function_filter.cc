#include "storage/select/function_filter.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/text/nearest_word.h"

namespace collect::select {

Result<NameFilter> NameFilter::make(const std::vector<std::string>& words) {
  auto parsed = parse_function_words(words);
  if (!parsed.ok()) return Error{parsed.code(), "--function: " + parsed.error().message};
  NameFilter filter;
  filter.words_ = std::move(*parsed);
  filter.found_.resize(filter.words_.size(), false);
  return filter;
}

bool NameFilter::wants(std::string_view name, uint64_t id) {
  if (everything()) return true;
  bool wanted = false;
  for (size_t i = 0; i < words_.size(); ++i) {
    const FunctionWord& word = words_[i];
    const bool means = word.id ? *word.id == id : means_function(word.text, "", name);
    if (!means) continue;
    wanted = true;
    found_[i] = true;
  }
  return wanted;
}

void NameFilter::take_found(const NameFilter& other) {
  for (size_t i = 0; i < found_.size(); ++i) {
    if (other.found_[i]) found_[i] = true;
  }
}

Status NameFilter::check_all_found(std::string_view what,
                                   const std::vector<std::string>& known) const {
  const auto missing = std::find(found_.begin(), found_.end(), false);
  if (missing == found_.end()) return {};
  const std::string& word = words_[static_cast<size_t>(missing - found_.begin())].text;
  std::string message = fmt::format("no {} matches \"{}\"", what, word);
  std::vector<std::string_view> bases;
  for (const std::string& name : known) bases.push_back(base_name(name));
  const std::string_view near = nearest_word(word, bases.data(), bases.size());
  if (!near.empty()) {
    message += fmt::format("; did you mean {}?", near);
  } else if (!known.empty()) {
    message += fmt::format("; {}{} known, {}{}", known.size(), known.size() == 1 ? " is" : " are",
                           known.size() == 1 ? "" : "such as ", known.front());
  }
  return Error{Code::kNotFound, std::move(message)};
}

Result<FunctionFilter> FunctionFilter::make(const std::vector<std::string>& words,
                                            const read::NameTable& names) {
  auto made = NameFilter::make(words);
  if (!made.ok()) return made.error();
  FunctionFilter filter;
  filter.filter_ = std::move(*made);
  filter.names_ = &names;
  return filter;
}

bool FunctionFilter::wants(uint64_t function_id) {
  if (everything()) return true;
  if (const auto it = decided_.find(function_id); it != decided_.end()) return it->second;
  const bool wanted = filter_.wants(names_->name_of(function_id), function_id);
  if (decided_.size() < kMaxRemembered) decided_.emplace(function_id, wanted);
  return wanted;
}

Status FunctionFilter::check_all_found(std::string_view what,
                                       const std::vector<storage::Symbol>& symbols) {
  if (everything()) return {};
  std::vector<std::string> known;
  for (const storage::Symbol& symbol : symbols) {
    filter_.wants(symbol.name, symbol.function_id);
    known.push_back(symbol.name);
  }
  return filter_.check_all_found(what, known);
}

}  // namespace collect::select
