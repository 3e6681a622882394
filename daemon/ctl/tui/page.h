// A list that fills the screen of `report --tui`, one row of which is chosen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/ctl/tui/screen_text.h"

namespace collect::ctl::tui {

class Page {
 public:
  // What Enter on a row leads to.
  struct Target {
    enum class Kind : uint8_t { kNone, kStay, kFunction, kThread };
    Kind kind = Kind::kNone;
    uint64_t function = 0;  // of kFunction
    std::string thread{};   // of kThread, as --thread takes it; empty: all
  };
  enum class Kind : uint8_t { kFunctions, kFunction, kGraph, kCalls, kThreads, kText };

  virtual ~Page() = default;

  virtual Kind kind() const = 0;
  virtual std::string title() const = 0;
  virtual std::string keys() const = 0;  // for the foot
  virtual std::string heading(size_t columns) const = 0;
  virtual size_t size() const = 0;
  virtual std::string line(size_t row, size_t columns) const = 0;
  virtual bool is_section(size_t) const { return false; }
  virtual std::string below(size_t) const { return {}; }  // all of the name of the row
  virtual std::string searched(size_t row) const { return below(row); }
  // Of the row, or of the page; nullopt: there is none.
  virtual std::optional<uint64_t> function() const { return std::nullopt; }
  virtual Target enter() { return {}; }
  // A key of this page alone. False: it is none.
  virtual bool press(const KeyPress&) { return false; }
  // Chooses the next row that has the text, and begins again at the other end. False: none has it.
  virtual bool find(const SearchText& text, bool forward);

  size_t chosen() const { return chosen_; }
  void choose(size_t row) { chosen_ = size() == 0 ? 0 : std::min(row, size() - 1); }
  // The first row of a screen with so many.
  size_t scroll(size_t rows);

 private:
  size_t chosen_ = 0;
  size_t first_ = 0;
};

}  // namespace collect::ctl::tui
