#include "daemon/ctl/tui/view.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/tui/function_page.h"
#include "daemon/ctl/tui/function_table.h"
#include "daemon/ctl/tui/graph_page.h"
#include "daemon/ctl/tui/short_pages.h"
#include "formats/core/text/figures.h"

namespace collect::ctl::tui {
namespace {

constexpr size_t kMostPages = 64;   // the oldest functions are left out
constexpr size_t kMaxPrompt = 256;  // bytes
constexpr size_t kHighScreen = 30;  // rows, with more lines for the name

size_t name_rows(size_t rows) {
  return rows >= kHighScreen ? 4 : rows >= 12 ? 2 : 1;
}

// Without the last character, of some bytes.
void drop_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
  if (!text.empty()) text.pop_back();
}

}  // namespace

View::View(std::unique_ptr<Capture> capture) : all_(std::move(capture)), capture_(all_.get()) {
  pages_.push_back(std::make_unique<FunctionTable>(*capture_, capture_->options().sort));
}

bool View::press(const KeyPress& key) {
  message_.clear();
  if (is_prompting_) {
    press_prompt(key);
    return true;
  }
  if (key.text == "q") return false;
  if (key.key == Key::kEnter) {
    enter();
  } else if (key.key == Key::kBackspace || key.key == Key::kEscape) {
    back();
  } else if (!page().press(key) && !move(key.key)) {
    press_letter(key.text);
  }
  return true;
}

bool View::move(Key key) {
  const size_t now = page().chosen();
  switch (key) {
    case Key::kUp:
      page().choose(now == 0 ? 0 : now - 1);
      return true;
    case Key::kDown:
      page().choose(now + 1);
      return true;
    case Key::kPageUp:
      page().choose(now - std::min(now, page_rows_));
      return true;
    case Key::kPageDown:
      page().choose(now + page_rows_);
      return true;
    case Key::kHome:
      page().choose(0);
      return true;
    case Key::kEnd:
      page().choose(page().size());
      return true;
    default:
      return false;
  }
}

void View::press_letter(const std::string& letter) {
  if (letter == "j") {
    move(Key::kDown);
  } else if (letter == "k") {
    move(Key::kUp);
  } else if (letter == "/") {
    is_prompting_ = true;
    prompt_.clear();
  } else if (letter == "n" || letter == "N") {
    search(letter == "n");
  } else if (letter == "g") {
    open_graph();
  } else if (letter == "c") {
    open_calls();
  } else if (letter == "f") {
    if (const auto function = page().function()) open_function(*function);
  } else if (letter == "t" && page().kind() != Page::Kind::kThreads) {
    pages_.push_back(std::make_unique<ThreadsPage>(*all_));
  } else if (letter == "?" && page().kind() != Page::Kind::kText) {
    pages_.push_back(keys_page());
  } else if (letter == "i" && page().kind() != Page::Kind::kText) {
    pages_.push_back(remarks_page(*capture_));
  }
}

void View::press_prompt(const KeyPress& key) {
  if (key.key == Key::kEscape || (key.key == Key::kBackspace && prompt_.empty())) {
    is_prompting_ = false;
  } else if (key.key == Key::kBackspace) {
    drop_character(prompt_);
  } else if (key.key == Key::kEnter) {
    is_prompting_ = false;
    if (!prompt_.empty()) search_ = SearchText(prompt_);
    search(true);
  } else if (key.key == Key::kText && prompt_.size() + key.text.size() <= kMaxPrompt) {
    prompt_ += key.text;
  }
}

void View::search(bool forward) {
  if (search_.text().empty()) {
    message_ = "nothing to search for: / begins a search";
  } else if (!page().find(search_, forward)) {
    message_ = fmt::format("not here: {}", printable(search_.text()));
  }
}

void View::enter() {
  if (page().size() == 0) return;
  const Page::Target target = page().enter();
  if (target.kind == Page::Target::Kind::kFunction) open_function(target.function);
  if (target.kind == Page::Target::Kind::kThread) choose_thread(target.thread);
}

void View::back() {
  if (pages_.size() > 1) pages_.pop_back();
}

void View::open_function(uint64_t id) {
  const ReportRow* function = capture_->function(id);
  if (function == nullptr) return;
  // Not the one that is open already.
  if (page().kind() == Page::Kind::kFunction && page().function() == id) return;
  if (pages_.size() == kMostPages) pages_.erase(pages_.begin() + 1);
  pages_.push_back(std::make_unique<FunctionPage>(*capture_, *function));
}

void View::open_graph() {
  if (page().kind() == Page::Kind::kGraph) return;
  const CallGraph& graph = capture_->graph();
  std::erase_if(pages_, [](const auto& one) { return one->kind() == Page::Kind::kGraph; });
  pages_.push_back(std::make_unique<GraphPage>(graph, capture_->functions().counts.running_ns));
}

void View::open_calls() {
  const auto id = page().function();
  const ReportRow* function = id ? capture_->function(*id) : nullptr;
  if (function == nullptr) return;
  const auto calls = capture_->slowest_calls(function->name);
  if (!calls.ok()) {
    message_ = printable_sentence(calls.error().message);
    return;
  }
  pages_.push_back(std::make_unique<CallsPage>(*capture_, *function, *calls));
}

void View::choose_thread(const std::string& word) {
  std::unique_ptr<Capture> chosen;
  if (!word.empty()) {
    ReportOptions options = all_->options();
    options.threads = {word};
    options.progress = false;
    chosen = std::make_unique<Capture>(all_->busy(), all_->shown_path());
    std::ostringstream out, err;
    if (chosen->open(options, {false, out, err}) != 0) {
      message_ = printable_sentence(err.str());
      return;
    }
  }
  // The page from which a thread was chosen, of the new one.
  const Page& from = *pages_[pages_.size() - 2];
  const bool was_graph = from.kind() == Page::Kind::kGraph;
  const auto function =
      from.kind() == Page::Kind::kFunction ? from.function() : std::optional<uint64_t>();
  const ReportSort sort = static_cast<const FunctionTable&>(*pages_.front()).sort();
  thread_name_ = word.empty() ? word : page().below(page().chosen());
  pages_.clear();
  one_ = std::move(chosen);
  capture_ = one_ ? one_.get() : all_.get();
  pages_.push_back(std::make_unique<FunctionTable>(*capture_, sort));
  if (was_graph) open_graph();
  if (function) open_function(*function);
}

std::string View::title(size_t columns) {
  const ReportProfile& profile = capture_->functions();
  const std::string thread =
      one_ ? thread_name_ : counted(capture_->reported().threads().size(), "thread");
  std::string text =
      fmt::format(" {}   {}   {}", page().title(), thread, counted(profile.counts.events, "event"));
  if (const uint64_t lost = capture_->reported().lost_events(profile.counts); lost != 0) {
    text += fmt::format("   lost {}", with_thousands(lost));
  }
  const std::string path = printable(capture_->path());
  const size_t used = columns_of(text) + 3;
  if (used + 16 <= columns) text += "   " + cut_to_end(path, columns - used);
  return cut_to(text, columns);
}

Line View::foot(size_t columns) {
  if (is_prompting_) return {cut_to_end("/" + printable(prompt_), columns), Style::kMessage};
  if (!message_.empty()) return {cut_to(message_, columns), Style::kMessage};
  return {cut_to(page().keys(), columns), Style::kFoot};
}

std::vector<Line> View::lines(size_t columns, size_t rows) {
  columns = std::max<size_t>(columns, 1);
  rows = std::max(rows, kLeastRows);
  const size_t names = name_rows(rows);
  page_rows_ = rows - names - 3;
  std::vector<Line> lines = {{title(columns), Style::kTitle},
                             {cut_to(page().heading(columns), columns), Style::kHeading}};
  const size_t first = page().scroll(page_rows_);
  for (size_t row = first; row < first + page_rows_; ++row) {
    if (row >= page().size()) {
      lines.push_back({});
      continue;
    }
    const Style style = row == page().chosen()   ? Style::kChosen
                        : page().is_section(row) ? Style::kSection
                                                 : Style::kPlain;
    lines.push_back({cut_to(page().line(row, columns), columns), style});
  }
  const std::string below =
      page().size() == 0 ? "nothing was called" : page().below(page().chosen());
  for (std::string& text : wrapped(below, columns, names)) {
    lines.push_back({std::move(text), Style::kName});
  }
  lines.push_back(foot(columns));
  return lines;
}

}  // namespace collect::ctl::tui
