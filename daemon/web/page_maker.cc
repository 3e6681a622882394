#include "daemon/web/page_maker.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/symbolize/child_program.h"
#include "formats/core/threads.h"

namespace collect::web {

PageMaker::~PageMaker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const Cancelled& cancelled : in_progress_) *cancelled = true;
  }
  makers_.join();
}

void PageMaker::make(PageRequest request, Cancelled cancelled, Done done) {
  const std::shared_ptr<void> slot(nullptr, [pages = pages_](void*) { --*pages; });
  if (++*pages_ > kMaxPages) {
    done(Error{Code::kLimit,
               fmt::format("more than {} pages are being made: try again in a moment", kMaxPages)});
    return;
  }
  makers_.post(
      [this, request = std::move(request), cancelled = std::move(cancelled), done, slot] {
        Result<std::string> html = Error{Code::kCancelled, "the page was not made: stopped"};
        const Status made = contain([&] {
          if (begin(cancelled)) html = run(request, cancelled);
        });
        if (!made.ok()) html = made.error();
        end(cancelled);
        if (html.ok()) {
          done(Page{std::move(*html), slot});
        } else {
          done(html.error());
        }
      },
      done);
}

// False: no one waits for the page any more.
bool PageMaker::begin(const Cancelled& cancelled) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || *cancelled) return false;
  in_progress_.insert(cancelled);
  return true;
}

void PageMaker::end(const Cancelled& cancelled) {
  const std::lock_guard lock(mutex_);
  in_progress_.erase(cancelled);
}

Result<std::string> PageMaker::run(const PageRequest& request, const Cancelled& cancelled) const {
  const std::string asked = request.to_json();
  const Bytes input(reinterpret_cast<const uint8_t*>(asked.data()), asked.size());
  std::string output;
  const symbolize::ChildBounds bounds{kPageDeadline, kMaxPageBytes, cancelled.get()};
  const auto ending = symbolize::run_child({program_}, input, bounds, [&](Bytes bytes) {
    output.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Status();
  });
  if (!ending.ok()) return ending.error();
  if (!ending->fault.empty()) {
    return Error{Code::kLimit, fmt::format("the page could not be made: {}; a file has no "
                                           "such limits: collectctl open --no-serve {}",
                                           ending->fault, request.directory)};
  }
  if (auto error = error_in_page(output, request.want))
    return Error{Code::kDamaged, std::move(*error)};
  return output;
}

}  // namespace collect::web
