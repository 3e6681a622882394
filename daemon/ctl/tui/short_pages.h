// Pages that are made once and stay as they are: slowest calls, threads, texts.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/tui/capture.h"
#include "daemon/ctl/tui/page.h"

namespace collect::ctl::tui {

// A page of lines that were worked out when it was made.
class ListPage : public Page {
 public:
  std::string heading(size_t) const override { return heading_; }
  size_t size() const override { return rows_.size(); }
  std::string line(size_t row, size_t) const override { return rows_[row].text; }
  std::string below(size_t row) const override { return rows_[row].below; }
  std::string searched(size_t row) const override { return rows_[row].text; }

 protected:
  struct Row {
    std::string text;
    std::string below{};
  };
  std::string heading_;
  std::vector<Row> rows_;
};

// The slowest calls of a function.
class CallsPage final : public ListPage {
 public:
  CallsPage(const Capture& capture, const ReportRow& function, const html::FunctionCalls& calls);

  Kind kind() const override { return Kind::kCalls; }
  std::string title() const override { return title_; }
  std::string keys() const override { return "q:quit  ?:keys  Backspace:back"; }

 private:
  std::string title_;
};

// The threads of a capture, to choose one.
class ThreadsPage final : public ListPage {
 public:
  explicit ThreadsPage(const Capture& capture);

  Kind kind() const override { return Kind::kThreads; }
  std::string title() const override { return "Show which thread?"; }
  std::string keys() const override {
    return "q:quit  ?:keys  Backspace:back  Enter:choose  /:search";
  }
  Target enter() override;

 private:
  std::vector<ThreadOfCapture> threads_;
};

class TextPage final : public ListPage {
 public:
  TextPage(std::string title, const std::vector<std::string>& lines);

  Kind kind() const override { return Kind::kText; }
  std::string title() const override { return title_; }
  std::string keys() const override { return "q:quit  Backspace:back"; }

 private:
  std::string title_;
};

std::unique_ptr<Page> keys_page();
// What the times leave out, and whether the session is complete.
std::unique_ptr<Page> remarks_page(const Capture& capture);

}  // namespace collect::ctl::tui
