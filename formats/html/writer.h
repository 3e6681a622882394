// Writes one HTML file that shows a capture in any browser, without a server or a network: flame
// graph, functions, time line (FORMAT.md). Nothing else is loaded by it.
//
// Pure: any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/result.h"

namespace collect::html {

// A part of a thread's time: first and last moment, ns.
using Interval = std::pair<uint64_t, uint64_t>;

// A call tree, flat: node 0 is the root, and parents come before their children.
struct Tree {
  // Names of nodes that are no function.
  static constexpr int64_t kRoot = -1;
  static constexpr int64_t kAfterLoss = -2;   // calls whose callers were lost
  static constexpr int64_t kOtherPaths = -3;  // paths that are not distinguished

  struct Node {
    uint32_t parent = 0;
    int64_t name = kRoot;  // in Page::names
    uint64_t total_ns = 0;
    uint64_t self_ns = 0;
    uint64_t calls = 0;
    // Of these times, off the processor.
    uint64_t waited_ns = 0;
    uint64_t self_waited_ns = 0;
  };
  std::vector<Node> nodes = {Node{}};
};

// A call on the time line, or several that are too close to each other to be distinguished.
struct Bar {
  static constexpr uint64_t kNoRecord = std::numeric_limits<uint64_t>::max();

  uint32_t depth = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  uint64_t name = 0;        // in Page::names; of several calls, of the ones with the most time
  uint64_t calls = 0;       // that began here
  uint64_t covered_ns = 0;  // of this time, in calls
  bool is_call = false;     // one call; what follows is of it
  bool is_whole = false;    // it is in the page's time as a whole
  uint64_t begin_ns = 0;
  uint64_t total_ns = 0;  // without stalls, in the page's time
  uint64_t self_ns = 0;
  const char* end = "";                  // how it ended
  uint64_t record_of_begin = kNoRecord;  // number of the detail record
  uint64_t record_of_end = kNoRecord;
};

struct Thread {
  std::string name;
  uint32_t number = 0;             // N of thread_N
  std::vector<Bar> bars;           // by depth and time
  uint64_t deeper_calls = 0;       // that have no bars
  bool has_all_calls = false;      // bars come from the calls themselves
  std::vector<uint32_t> activity;  // events in equal parts of the page's time
  std::vector<Interval> stalls;
  std::vector<Interval> waits;  // off the processor
  std::vector<Interval> gaps;   // in which events were lost
  Tree tree;
};

// What a person said about a moment.
struct Marker {
  uint64_t at_ns = 0;
  std::string text;
};

struct Function {
  uint64_t name = 0;  // in Page::names
  uint64_t calls = 0;
  uint64_t total_ns = 0;
  uint64_t self_ns = 0;
  uint64_t p50_ns = 0;  // of whole calls; 0, as the others: there are none
  uint64_t p99_ns = 0;
  uint64_t longest_ns = 0;
  uint64_t self_waited_ns = 0;  // off the processor
};

struct Page {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // shown above everything else
  std::vector<std::string> missing;                        // a sentence each; none: all is there
  bool can_refresh = false;                                // loading it again gives a newer one
  bool is_recording = false;  // more of it comes: the time line can follow
  bool has_waits = false;     // it is known when threads were off the processor
  bool can_ask = false;       // its server answers for windows of time and detail records
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  std::vector<std::string> names;
  std::vector<std::string> places;   // where each is in its source, as file:line; empty: not known
  std::vector<std::string> modules;  // of each; empty: not known
  std::vector<Thread> threads;
  std::vector<Function> functions;
  std::vector<Marker> markers;
};

// A call of the function that a page asked about. Names of bars are not used.
struct FoundCall {
  uint32_t thread = 0;     // N of thread_N
  uint64_t waited_ns = 0;  // of its total time, off the processor
  Bar bar;
};

struct FunctionCalls {
  struct Duration {
    uint64_t first_ns = 0;  // calls that took so long, without stalls
    uint64_t last_ns = 0;
    uint64_t calls = 0;
    FoundCall longest;
  };
  uint64_t calls = 0;  // also those that began before or ended behind what was recorded
  std::vector<Duration> durations;  // of whole calls
  std::vector<FoundCall> slowest;
};

// Texts may be anything: they are shown as text.
Status write_page(const Page& page, ByteSink& out);
// What the page would hold, as JSON: a page that is there shows it.
Status write_page_data(const Page& page, ByteSink& out);
// The answer to a page that asks for the calls of a function, as JSON.
Status write_function_calls(const FunctionCalls& calls, ByteSink& out);

// The script that every page runs, and its style sheet: what is between the tags. A server that
// serves pages allows these two by their hashes, and nothing else.
std::string_view page_script();
std::string_view page_style();

}  // namespace collect::html
