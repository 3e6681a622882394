#include "formats/html/writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "formats/core/text/printable.h"
#include "formats/core/text_sink.h"
#include "formats/html/page_text.h"

namespace collect::html {
namespace {

constexpr std::string_view kConnectPlace = "@CONNECT@";
constexpr std::string_view kDataPlace = "@DATA@";

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
    if (page.can_ask) out_.put(",\"can_ask\":true");
    if (page.is_recording) out_.put(",\"is_recording\":true");
    has_waits_ = page.has_waits;
    if (has_waits_) out_.put(",\"has_waits\":true");
    out_.put(",\"origin\":\"");  // first_ns again: as a number it may lose its last digits
    out_.dec(page.first_ns);
    out_.put('"');
    out_.put(",\"first_ns\":");
    out_.dec(page.first_ns);
    out_.put(",\"last_ns\":");
    out_.dec(page.last_ns);
    out_.put(",\n\"names\":");
    list(page.names, [this](const std::string& name) { text(name); });
    out_.put(",\n\"places\":");
    list(page.places, [this](const std::string& place) { text(place); });
    out_.put(",\n\"modules\":");
    put_modules(page.modules);
    out_.put(",\n\"threads\":");
    list(page.threads, [&](const Thread& thread) { put(thread, page.first_ns); });
    out_.put(",\n\"functions\":");
    list(page.functions, [this](const Function& function) { put(function); });
    out_.put(",\n\"markers\":");
    list(page.markers, [&](const Marker& marker) {
      out_.put('[');
      out_.dec(marker.at_ns - page.first_ns);
      out_.put(',');
      text(marker.text);
      out_.put(']');
    });
    out_.put('}');
  }

  void put(const FunctionCalls& calls) {
    uint64_t origin = std::numeric_limits<uint64_t>::max();
    for (const auto& duration : calls.durations) {
      origin = std::min(origin, duration.longest.bar.first_ns);
    }
    for (const FoundCall& call : calls.slowest) origin = std::min(origin, call.bar.first_ns);
    out_.put("{\"version\":1,\"origin\":\"");
    out_.dec(origin);
    out_.put("\",\"calls\":");
    out_.dec(calls.calls);
    out_.put(",\"durations\":");
    list(calls.durations, [&](const FunctionCalls::Duration& duration) {
      out_.put('[');
      for (const uint64_t value : {duration.first_ns, duration.last_ns, duration.calls}) {
        out_.dec(value);
        out_.put(',');
      }
      put(duration.longest, origin);
      out_.put(']');
    });
    out_.put(",\"slowest\":");
    list(calls.slowest, [&](const FoundCall& call) { put(call, origin); });
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

  // Few modules have many functions: each once, and its number for each name.
  void put_modules(const std::vector<std::string>& modules) {
    std::vector<std::string_view> names;
    std::map<std::string_view, uint64_t> numbers;
    out_.put("{\"of\":");
    list(modules, [&](const std::string& module) {
      const auto [known, is_new] = numbers.try_emplace(module, names.size());
      if (is_new) names.push_back(module);
      out_.dec(known->second);
    });
    out_.put(",\"names\":");
    list(names, [this](std::string_view name) { text(name); });
    out_.put('}');
  }

  void put(const Bar& bar, uint64_t page_ns) {
    out_.put('[');
    for (const uint64_t value : {uint64_t{bar.depth}, bar.first_ns - page_ns,
                                 bar.last_ns - bar.first_ns, bar.name, bar.calls}) {
      out_.dec(value);
      out_.put(',');
    }
    out_.dec(bar.covered_ns);
    if (bar.is_call) {
      for (const uint64_t value : {uint64_t{bar.is_whole}, bar.total_ns, bar.self_ns}) {
        out_.put(',');
        out_.dec(value);
      }
      out_.put(',');
      out_.dec(static_cast<int64_t>(bar.begin_ns - page_ns));
      out_.put(',');
      text(bar.end);
      for (const uint64_t record : {bar.record_of_begin, bar.record_of_end}) {
        out_.put(',');
        out_.dec(record == Bar::kNoRecord ? int64_t{-1} : static_cast<int64_t>(record));
      }
    }
    out_.put(']');
  }

  void put(const FoundCall& call, uint64_t origin_ns) {
    out_.put("{\"thread\":");
    out_.dec(uint64_t{call.thread});
    out_.put(",\"waited\":");
    out_.dec(call.waited_ns);
    out_.put(",\"bar\":");
    put(call.bar, origin_ns);
    out_.put('}');
  }

  void put(const Thread& thread, uint64_t page_ns) {
    out_.put("\n{\"name\":");
    text(thread.name);
    out_.put(",\"number\":");
    out_.dec(uint64_t{thread.number});
    out_.put(",\"all_calls\":");
    out_.put(thread.has_all_calls ? "true" : "false");
    out_.put(",\"deeper_calls\":");
    out_.dec(thread.deeper_calls);
    out_.put(",\"bars\":");
    list(thread.bars, [&](const Bar& bar) { put(bar, page_ns); });
    out_.put(",\"activity\":");
    list(thread.activity, [this](uint32_t events) { out_.dec(uint64_t{events}); });
    out_.put(",\"stalls\":");
    intervals(thread.stalls);
    if (has_waits_) {
      out_.put(",\"waits\":");
      intervals(thread.waits);
    }
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
    if (has_waits_) {
      out_.put(",\"waited\":");
      list(nodes, [this](const Tree::Node& node) { out_.dec(node.waited_ns); });
      out_.put(",\"self_waited\":");
      list(nodes, [this](const Tree::Node& node) { out_.dec(node.self_waited_ns); });
    }
    out_.put("}}");
  }

  void put(const Function& function) {
    std::vector<uint64_t> values = {function.name,      function.calls,  function.total_ns,
                                    function.self_ns,   function.p50_ns, function.p99_ns,
                                    function.longest_ns};
    if (has_waits_) values.push_back(function.self_waited_ns);
    out_.put('\n');
    list(values, [this](uint64_t value) { out_.dec(value); });
  }

  // Within a script element, "</script" would end it wherever it is.
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
  bool has_waits_ = false;
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

Status write_page_data(const Page& page, ByteSink& out) {
  TextSink text(out);
  DataWriter(text).put(page);
  return text.finish();
}

Status write_function_calls(const FunctionCalls& calls, ByteSink& out) {
  TextSink text(out);
  DataWriter(text).put(calls);
  return text.finish();
}

Status write_page(const Page& page, ByteSink& out) {
  const std::string_view whole(kPageText);
  const size_t connect = whole.find(kConnectPlace);
  const size_t data = whole.find(kDataPlace);
  COLLECT_CHECK(connect < data && data != std::string_view::npos);
  TextSink text(out);
  text.put(whole.substr(0, connect));
  if (page.can_ask) text.put("; connect-src 'self'");
  const size_t behind = connect + kConnectPlace.size();
  text.put(whole.substr(behind, data - behind));
  DataWriter(text).put(page);
  text.put(whole.substr(data + kDataPlace.size()));
  return text.finish();
}

}  // namespace collect::html
