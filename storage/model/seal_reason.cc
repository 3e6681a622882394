#include "storage/model/seal_reason.h"

#include <fmt/core.h>

#include "formats/core/text/printable.h"

namespace collect::storage {

std::string seal_reason(const Error& error) {
  return printable_sentence(fmt::format("{}: {}", code_name(error.code), error.message));
}

}  // namespace collect::storage
