// Makes the pages of sessions (formats/html), each by a run of collect-page: what it reads, how
// much memory it takes and how long it runs then are no danger to the daemon. WEB.md "Pages of
// sessions".
//
// make() is for any thread; answers come on the maker's own. The destructor ends what runs and
// answers what waits.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "daemon/web/limits.h"
#include "daemon/web/page_request.h"
#include "formats/core/result.h"
#include "formats/core/task_threads.h"

namespace collect::web {

class PageMaker {
 public:
  // A page counts against kMaxPages as long as this is held.
  struct Page {
    std::string html;
    std::shared_ptr<void> slot;
  };
  using Done = std::function<void(Result<Page>)>;
  using Cancelled = std::shared_ptr<std::atomic<bool>>;  // set when it is not wanted any more

  // `program` is collect-page.
  explicit PageMaker(std::string program) : program_(std::move(program)) {}
  ~PageMaker();

  // Answers exactly once. kLimit: too many pages are asked for, or this one needs more than a
  // limit; kNotFound: there is no collect-page; kCancelled; else the program could not make it.
  void make(PageRequest request, Cancelled cancelled, Done done);
  // Pages wait, are made, or are being sent.
  bool has_any() const { return *pages_ != 0; }

 private:
  Result<std::string> run(const PageRequest& request, const Cancelled& cancelled) const;
  bool begin(const Cancelled& cancelled);
  void end(const Cancelled& cancelled);

  const std::string program_;
  std::shared_ptr<std::atomic<size_t>> pages_ = std::make_shared<std::atomic<size_t>>(0);
  std::mutex mutex_;
  bool stopping_ = false;            // guarded by mutex_
  std::set<Cancelled> in_progress_;  // guarded by mutex_
  TaskThreads makers_{"pages", kMaxPagesAtOnce};
};

}  // namespace collect::web
