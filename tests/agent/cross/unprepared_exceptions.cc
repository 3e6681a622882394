// A C++ program that no one prepared: exceptions that leave frames of its own and of the C++
// library. Prints what it computed, and leaves with 5.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

[[gnu::noinline]] int deep(int n) {
  if (n == 0) throw std::runtime_error("deep");
  const std::string text(static_cast<size_t>(n), 'x');
  const int result = deep(n - 1);
  return result + static_cast<int>(text.size());
}

[[gnu::noinline]] int guarded(int n) {
  try {
    return deep(n);
  } catch (const std::exception& error) {
    return static_cast<int>(std::string(error.what()).size()) + n;
  }
}

}  // namespace

int main() {
  std::map<std::string, int> sums;
  for (int i = 0; i < 500; ++i) sums["k" + std::to_string(i * 7919 % 101)] += guarded(i % 7);
  std::ostringstream out;
  for (const auto& [name, sum] : sums) out << name << '=' << sum << ' ' << 1.5 * sum << ' ';
  std::vector<std::string> words;
  std::istringstream in(out.str());
  for (std::string word; in >> word;) words.push_back(word);
  std::sort(words.begin(), words.end());
  size_t hash = 0;
  for (const std::string& word : words) hash = hash * 31 + std::hash<std::string>()(word);
  std::printf("%zu %zu\n", words.size(), hash);
  return 5;
}
