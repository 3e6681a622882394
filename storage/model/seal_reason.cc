#include "storage/model/seal_reason.h"

#include "formats/core/text/printable.h"

namespace collect::storage {

std::string seal_reason(const Error& error) {
  return printable_sentence(std::string(code_name(error.code)) + ": " + error.message);
}

}  // namespace collect::storage
