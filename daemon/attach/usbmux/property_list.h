// Dictionaries of XML property lists, as usbmuxd and devices send them. For the .cc files of their
// messages alone: no one else knows libplist.
#pragma once

#include <plist/plist.h>

#include <memory>
#include <string>

#include "formats/core/bytes.h"

namespace collect::attach {

struct FreePlist {
  void operator()(void* node) const { plist_free(node); }
};
using Plist = std::unique_ptr<void, FreePlist>;

// Null: no property list with a dictionary.
Plist parse_dictionary(Bytes xml);
// The value of that type; null: there is none.
plist_t dictionary_item(plist_t dictionary, const char* key, plist_type type);
// Empty when it is not there. False: longer than `max_bytes`.
bool dictionary_text(plist_t dictionary, const char* key, size_t max_bytes, std::string& out);
std::string xml_of(const Plist& list);

}  // namespace collect::attach
