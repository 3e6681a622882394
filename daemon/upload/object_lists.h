// Lists of a bucket, of which every page is asked for again as retry.h does, and which end: a store
// that hands out pages for ever is an error (formats/core/untrusted_pages.h).
//
// Used on the caller's thread, which waits for the server.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>

#include "daemon/upload/s3/retry.h"
#include "daemon/upload/s3/s3_client.h"
#include "formats/core/untrusted_pages.h"

namespace collect::upload {

// `ask` gives the page of a token, `take` gets each entry. kLimit: more than `most` entries.
template <class Ask, class Take>
Status read_pages(Retries& retries, std::string what, uint64_t most, Ask ask, Take take) {
  UntrustedPages pages(std::move(what), most);
  do {
    auto page = retries.run([&] { return ask(pages.token()); });
    if (!page.ok()) return page.error();
    const uint64_t count = page->entries.size();
    for (auto& entry : page->entries) COLLECT_TRY(take(std::move(entry)));
    COLLECT_TRY(pages.turn(count, std::move(page->next)));
  } while (pages.goes_on());
  return {};
}

// The objects whose keys begin with `below`, in the order of their keys, each once: a store that
// does not keep to it, as the same page under another token, is kDamaged.
template <class Take>
Status read_objects(S3Client& client, Retries& retries, const std::string& below, uint64_t most,
                    Take take) {
  std::string before;
  return read_pages(
      retries, "the list of " + below, most,
      [&](const std::string& token) { return client.list(below, token); },
      [&](ObjectInfo object) -> Status {
        if (object.key <= before) {
          return Error{Code::kDamaged,
                       fmt::format("the list of {} is out of order: {} comes behind {}", below,
                                   object.key.substr(0, 100), before.substr(0, 100))};
        }
        before = object.key;
        return take(std::move(object));
      });
}

}  // namespace collect::upload
