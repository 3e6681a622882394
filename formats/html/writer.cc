#include "formats/html/writer.h"

#include <string_view>

#include "formats/core/printable.h"
#include "formats/core/text_sink.h"
#include "formats/html/page_text.h"

namespace collect::html {
namespace {

constexpr std::string_view kPlace = "@DATA@";

class DataWriter {
 public:
  explicit DataWriter(TextSink& out) : out_(out) {}

  void put(const Page& page) {
    out_.put("{\"version\":1,\"title\":");
    text(page.title);
    out_.put(",\"facts\":");
    list(page.facts, [this](const auto& fact) {
      out_.put('[');
      text(fact.first);
      out_.put(',');
      text(fact.second);
      out_.put(']');
    });
    out_.put(",\"missing\":");
    list(page.missing, [this](const std::string& sentence) { text(sentence); });
    if (page.can_refresh) out_.put(",\"can_refresh\":true");
    out_.put(",\"first_ns\":");
    out_.dec(page.first_ns);
    out_.put(",\"last_ns\":");
    out_.dec(page.last_ns);
    out_.put(",\n\"names\":");
    list(page.names, [this](const std::string& name) { text(name); });
    out_.put(",\n\"threads\":");
    list(page.threads, [this](const Thread& thread) { put(thread); });
    out_.put(",\n\"functions\":");
    list(page.functions, [this](const Function& function) { put(function); });
    out_.put('}');
  }

 private:
  template <class Items, class Put>
  void list(const Items& items, const Put& put) {
    out_.put('[');
    bool is_first = true;
    for (const auto& item : items) {
      if (!is_first) out_.put(',');
      is_first = false;
      put(item);
    }
    out_.put(']');
  }

  void numbers(std::initializer_list<uint64_t> values) {
    list(values, [this](uint64_t value) { out_.dec(value); });
  }

  void intervals(const std::vector<Interval>& intervals) {
    list(intervals, [this](const Interval& one) { numbers({one.first, one.second}); });
  }

  void put(const Thread& thread) {
    out_.put("\n{\"name\":");
    text(thread.name);
    out_.put(",\"activity\":");
    list(thread.activity, [this](uint32_t events) { out_.dec(uint64_t{events}); });
    out_.put(",\"stalls\":");
    intervals(thread.stalls);
    out_.put(",\"gaps\":");
    intervals(thread.gaps);
    const auto& nodes = thread.tree.nodes;
    out_.put(",\"tree\":{\"parent\":");
    list(nodes, [this](const Tree::Node& node) { out_.dec(uint64_t{node.parent}); });
    out_.put(",\"name\":");
    list(nodes, [this](const Tree::Node& node) { out_.dec(node.name); });
    out_.put(",\"total\":");
    list(nodes, [this](const Tree::Node& node) { out_.dec(node.total_ns); });
    out_.put(",\"self\":");
    list(nodes, [this](const Tree::Node& node) { out_.dec(node.self_ns); });
    out_.put(",\"calls\":");
    list(nodes, [this](const Tree::Node& node) { out_.dec(node.calls); });
    out_.put("}}");
  }

  void put(const Function& function) {
    out_.put('\n');
    numbers({function.name, function.calls, function.total_ns, function.self_ns, function.p50_ns,
             function.p99_ns, function.longest_ns});
  }

  // Within a script element, "</script" would end it wherever it stands.
  void text(std::string_view value) {
    json_.clear();
    append_json_string(json_, value);
    for (const char c : json_) {
      if (c == '<') {
        out_.put("\\u003c");
      } else {
        out_.put(c);
      }
    }
  }

  TextSink& out_;
  std::string json_;
};

// The text of kPageText between the last `begin` and the `end` after it.
std::string_view between(std::string_view begin, std::string_view end) {
  const std::string_view whole(kPageText);
  const size_t first = whole.rfind(begin);
  COLLECT_CHECK(first != std::string_view::npos);
  const size_t last = whole.find(end, first);
  COLLECT_CHECK(last != std::string_view::npos);
  return whole.substr(first + begin.size(), last - first - begin.size());
}

}  // namespace

std::string_view page_script() {
  return between("<script>", "</script>");
}

std::string_view page_style() {
  return between("<style>", "</style>");
}

Status write_page(const Page& page, ByteSink& out) {
  const std::string_view whole(kPageText);
  const size_t at = whole.find(kPlace);
  COLLECT_CHECK(at != std::string_view::npos);
  TextSink text(out);
  text.put(whole.substr(0, at));
  DataWriter(text).put(page);
  text.put(whole.substr(at + kPlace.size()));
  return text.finish();
}

}  // namespace collect::html
