// What collect-load does: it loads captures, and asks the server.
#pragma once

#include <iosfwd>

#include "daemon/warehouse/load_arguments.h"

namespace collect::warehouse {

// 0: all is loaded, each call counts once. 1: something could not be loaded, or a remark says what
// is not right yet. 2: nothing was done, or the server or bucket failed half way: load again.
int load(const LoadArguments& arguments, std::ostream& out, std::ostream& err);

// 0: answered; 2: not, and the reason was printed.
int query(const LoadArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace collect::warehouse
