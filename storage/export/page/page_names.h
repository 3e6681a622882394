// What a page says of functions: the names of all sessions' functions, each once, with the file
// and line where it begins and its module. And call trees by these names.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/calls/path_tree.h"
#include "formats/html/writer.h"
#include "storage/export/exported_session.h"
#include "storage/export/function_names.h"

namespace collect::exports {

class PageNames {
 public:
  explicit PageNames(html::Page& page) : page_(page) {}

  // Functions of one name are one; place and module are those of the first which has them.
  uint64_t number_of(const ExportedSession& session, const FunctionNames& functions, uint32_t slot);

 private:
  html::Page& page_;
  std::unordered_map<std::string, uint64_t> numbers_;
};

html::Tree page_tree(const ExportedSession& session, const FunctionNames& functions,
                     PageNames& names, const std::vector<calls::PathNode>& paths);

}  // namespace collect::exports
