#include "formats/core/text/function_pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "formats/core/text/glob.h"

namespace collect {
namespace {

// "ns::f<int>(char)" without "(char)"; "operator()", "(anonymous namespace)::f" and
// "f(char)::{lambda(int)#1}" keep theirs.
std::string_view without_arguments(std::string_view name) {
  if (name.ends_with('}')) return name;
  size_t depth = 0;
  for (size_t at = name.size(); at-- > 1;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && depth != 0 && --depth == 0) return name.substr(0, at);
  }
  return name;
}

bool is_operator(std::string_view rest) {
  constexpr std::string_view kOperator = "operator";
  return rest.starts_with(kOperator) && rest.size() > kOperator.size() &&
         std::isalnum(static_cast<unsigned char>(rest[kOperator.size()])) == 0 &&
         rest[kOperator.size()] != '_';
}

// Where the parts of a C++ name begin and end.
class NameParts {
 public:
  // In a name that is nested deeper, the innermost parts count.
  static constexpr size_t kMaxStarts = 16;

  explicit NameParts(std::string_view name)
      : arguments_(without_arguments(name).size()), template_(arguments_) {
    size_t depth = 0;
    add_start(0);
    for (size_t at = 0; at < arguments_; ++at) {
      if (at == last_start_ && is_operator(name.substr(at))) break;  // its brackets are none
      const char c = name[at];
      if (c == '<' && depth == 0 && at > last_start_) template_ = std::min(template_, at);
      if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
      if ((c == ')' || c == '>' || c == '}' || c == ']') && depth != 0) --depth;
      if (depth != 0) continue;
      if (c == ':' && at + 2 < arguments_ && name[at + 1] == ':') {
        add_start(++at + 1);
      } else if (c == ' ') {
        add_start(at + 1);  // behind the type that a template returns
      }
    }
  }

  size_t arguments() const { return arguments_; }
  size_t template_arguments() const { return template_; }
  size_t last_start() const { return last_start_; }
  size_t starts() const { return std::min(count_, kMaxStarts); }
  size_t start(size_t i) const { return starts_[i]; }

 private:
  void add_start(size_t at) {
    starts_[count_++ % kMaxStarts] = last_start_ = at;
    template_ = arguments_;
  }

  const size_t arguments_;  // where the arguments begin, or the end
  size_t template_;         // where those of the last part's template begin, or as arguments_
  size_t last_start_ = 0;
  size_t count_ = 0;
  std::array<size_t, kMaxStarts> starts_{};
};

bool means_name(std::string_view pattern, std::string_view name) {
  if (matches_glob(pattern, name)) return true;
  if (pattern.empty()) return false;
  const NameParts parts(name);
  const auto matches_from = [&](size_t start) {
    // A * at the end takes the rest, so that the longest name decides.
    if (pattern.back() == '*') return matches_glob(pattern, name.substr(start));
    for (const size_t end : {name.size(), parts.arguments(), parts.template_arguments()}) {
      if (matches_glob(pattern, name.substr(start, end - start))) return true;
    }
    return false;
  };
  if (matches_from(0)) return true;
  if (pattern.front() == '*') return false;  // it matched everything in front
  for (size_t i = 0; i < parts.starts(); ++i) {
    if (matches_from(parts.start(i))) return true;
  }
  return false;
}

}  // namespace

Result<std::vector<FunctionWord>> parse_function_words(const std::vector<std::string>& words) {
  std::vector<FunctionWord> parsed_words;
  size_t patterns = 0;
  for (const std::string& word : words) {
    if (word.empty()) return Error{Code::kInvalidArgument, "functions: an empty name"};
    if (word.size() >= kMaxFunctionWordBytes) {
      return Error{Code::kLimit, fmt::format("functions: a name of {} bytes", word.size())};
    }
    if (!word.starts_with("0x") && !word.starts_with("0X")) {
      parsed_words.push_back({word, std::nullopt});
      ++patterns;
      continue;
    }
    uint64_t id = 0;
    const char* const end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data() + 2, end, id, 16);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return Error{
          Code::kInvalidArgument,
          fmt::format("functions: \"{}\" is not a function id (0x and up to 16 hex digits)", word)};
    }
    parsed_words.push_back({word, id});
  }
  if (patterns > kMaxFunctionPatterns) {
    return Error{Code::kLimit, fmt::format("functions: more than {} names", kMaxFunctionPatterns)};
  }
  return parsed_words;
}

bool means_function(std::string_view pattern, std::string_view linkage_name,
                    std::string_view demangled) {
  return (!linkage_name.empty() && matches_glob(pattern, linkage_name)) ||
         means_name(pattern, demangled);
}

std::string_view base_name(std::string_view demangled) {
  const NameParts parts(demangled);
  return demangled.substr(parts.last_start(), parts.template_arguments() - parts.last_start());
}

}  // namespace collect
