#include "agent/ring/sleds/compiled_sleds.h"

#include <link.h>
#include <string.h>

#include "agent/ring/sleds/sled_writes.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

constexpr uint8_t kMapVersion = 2;
constexpr uint8_t kEnterWithArgument = 3;

struct Search {
  const collect_xray_module& registered;
  uint64_t text_begin = 0;
  uint64_t text_end = 0;
  bool map_is_inside = false;
  char* path;
  size_t path_bytes;
};

int look_at_object(dl_phdr_info* info, size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const auto code = reinterpret_cast<uint64_t>(search.registered.enter);
  const auto begin = reinterpret_cast<uint64_t>(search.registered.map_begin);
  const auto end = reinterpret_cast<uint64_t>(search.registered.map_end);
  bool map_is_inside = false;
  bool found = false;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t from = info->dlpi_addr + segment.p_vaddr;
    const uint64_t to = from + segment.p_filesz;
    if (begin >= from && end <= to) map_is_inside = true;
    if ((segment.p_flags & PF_X) == 0 || code < from || code >= to) continue;
    found = true;
    search.text_begin = from;
    search.text_end = to;
  }
  if (!found) return 0;
  search.map_is_inside = map_is_inside;
  const char* name = info->dlpi_name;
  if (name == nullptr || name[0] == '\0') name = "the executable";
  Text(search.path, search.path_bytes).add(name);
  return 1;
}

}  // namespace

// False: not one that is patched.
bool CompiledSleds::read_entry(const Entry& entry, Sled& sled) const {
  if (entry.version != kMapVersion) return false;
  if (entry.kind > kEnterWithArgument) return false;  // custom events
  sled.kind =
      entry.kind == kEnterWithArgument ? SledKind::kEnter : static_cast<SledKind>(entry.kind);
  sled.address = reinterpret_cast<uint64_t>(&entry.sled) + static_cast<uint64_t>(entry.sled);
  sled.function =
      reinterpret_cast<uint64_t>(&entry.function) + static_cast<uint64_t>(entry.function);
  if (sled.address < text_begin_ || sled.address >= text_end_ ||
      text_end_ - sled.address < Code::kBytes + Code::kLookAhead || sled.function < text_begin_ ||
      sled.function >= text_end_ || sled.address % sizeof(Code::Head) != 0) {
    return false;
  }
  sled.kind = Code::kind_of(reinterpret_cast<const uint8_t*>(sled.address), sled.kind);
  return true;
}

bool CompiledSleds::encode(const Sled& sled, uint8_t (&code)[Code::kBytes]) const {
  const void* const trampolines[] = {module_->enter, module_->exit, module_->tail};
  return Code::encode(
      sled.kind, sled.address,
      static_cast<int64_t>(sled.function - reinterpret_cast<uint64_t>(module_->anchor)),
      reinterpret_cast<uint64_t>(trampolines[static_cast<uint8_t>(sled.kind)]), code);
}

// What is neither ours nor the compiler's is left alone.
bool CompiledSleds::is_known_code(const Sled& sled, const uint8_t (&code)[Code::kBytes]) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(sled.address);
  return Code::is_idle(bytes, sled.kind) || memcmp(bytes, code, Code::kBytes) == 0;
}

// Whether its code and its map are where they can be.
bool CompiledSleds::find_text(char* path, size_t path_bytes) {
  Text(path, path_bytes).add("a module");
  Search search{*module_, 0, 0, false, path, path_bytes};
  (void)dl_iterate_phdr(look_at_object, &search);
  text_begin_ = search.text_begin;
  text_end_ = search.text_end;
  return text_end_ != 0 && search.map_is_inside;
}

const char* CompiledSleds::inspect(char* path, size_t path_bytes) {
  const bool is_there = find_text(path, path_bytes);
  const auto bytes =
      reinterpret_cast<uint64_t>(module_->map_end) - reinterpret_cast<uint64_t>(module_->map_begin);
  if (module_->map_begin == nullptr || bytes == 0) {
    return "has no xray_instr_map: was it built with -fxray-instrument?";
  }
  if (!is_there || bytes % sizeof(Entry) != 0) {
    return "its xray_instr_map is damaged; it is not traced";
  }
  uint64_t odd = 0;
  uint64_t other_version = 0;
  const Entry* const end = static_cast<const Entry*>(module_->map_end);
  for (const Entry* entry = static_cast<const Entry*>(module_->map_begin); entry != end; ++entry) {
    Sled sled{};
    uint8_t code[Code::kBytes];
    if (entry->version != kMapVersion) {
      ++other_version;
    } else if (entry->kind > kEnterWithArgument) {
      continue;
    } else if (!read_entry(*entry, sled) || !encode(sled, code) || !is_known_code(sled, code)) {
      ++odd;
    } else if (sled.kind == SledKind::kEnter) {
      ++functions_;
    }
  }
  if (other_version != 0) {
    return "has entries in its xray_instr_map of a version other than 2; those are not traced";
  }
  if (odd == 0) return nullptr;
  return "has sleds that are out of reach or not as a compiler writes them; those are not traced";
}

COLLECT_WRITES_CODE void CompiledSleds::write_tail(const Sled& sled) const {
  uint8_t code[Code::kBytes];
  if (!encode(sled, code)) return;
  auto* bytes = reinterpret_cast<volatile uint8_t*>(sled.address);
  for (size_t at = sizeof(Code::Head); at < Code::kBytes; ++at) {
    if (bytes[at] != code[at]) bytes[at] = code[at];
  }
  forget_cached(sled.address, Code::kBytes);
}

}  // namespace collect::agent
