#include "daemon/attach/usbmux/property_list.h"

namespace collect::attach {

Plist parse_dictionary(Bytes xml) {
  plist_t parsed = nullptr;
  plist_from_xml(reinterpret_cast<const char*>(xml.data()), static_cast<uint32_t>(xml.size()),
                 &parsed);
  Plist root(parsed);
  if (parsed == nullptr || plist_get_node_type(parsed) != PLIST_DICT) return nullptr;
  return root;
}

plist_t dictionary_item(plist_t dictionary, const char* key, plist_type type) {
  const plist_t found = plist_dict_get_item(dictionary, key);
  return found != nullptr && plist_get_node_type(found) == type ? found : nullptr;
}

bool dictionary_text(plist_t dictionary, const char* key, size_t max_bytes, std::string& out) {
  const plist_t found = dictionary_item(dictionary, key, PLIST_STRING);
  if (found == nullptr) return true;
  uint64_t length = 0;
  const char* const text = plist_get_string_ptr(found, &length);
  if (text == nullptr) return true;
  if (length > max_bytes) return false;
  out.assign(text, length);
  return true;
}

std::string xml_of(const Plist& list) {
  char* xml = nullptr;
  uint32_t bytes = 0;
  plist_to_xml(list.get(), &xml, &bytes);
  std::string text(xml, bytes);
  plist_to_xml_free(xml);
  return text;
}

}  // namespace collect::attach
