// What the string pool and the stack pool frames of one sub-stream have defined so far. An id that
// is defined again means its last content, from there on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/dial9/value.h"

namespace collect::dial9 {

// Id -> bytes that someone else owns. Encoders count ids from 0, so they index an array; ids far
// from that go to a hash table, so that one large id takes no large array.
class PoolTable {
 public:
  struct Entry {
    const uint8_t* data = nullptr;  // null: not defined
    uint32_t size = 0;              // bytes of a string, addresses of a stack
  };

  // Null when the id is not defined.
  const Entry* find(uint32_t id) const {
    if (id < dense_.size() && dense_[id].data != nullptr) return &dense_[id];
    return sparse_.empty() ? nullptr : find_sparse(id);
  }
  void define(uint32_t id, Entry entry);
  void clear();
  uint64_t definitions() const { return definitions_; }  // redefinitions included
  uint64_t ids() const { return ids_; }                  // distinct ones
  size_t state_bytes() const;

 private:
  const Entry* find_sparse(uint32_t id) const;

  std::vector<Entry> dense_;
  std::unordered_map<uint32_t, Entry> sparse_;
  uint64_t definitions_ = 0;
  uint64_t ids_ = 0;
};

// Both pools; their ids have nothing to do with each other.
class Pools {
 public:
  // Absent when the id is not defined so far.
  std::optional<std::string_view> string(uint32_t id) const {
    const PoolTable::Entry* entry = strings.find(id);
    if (entry == nullptr) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(entry->data), entry->size);
  }
  std::optional<StackView> stack(uint32_t id) const {
    const PoolTable::Entry* entry = stacks.find(id);
    if (entry == nullptr) return std::nullopt;
    return StackView(entry->data, entry->size);
  }

  // Copies the bytes, for decoders whose input does not stay.
  const uint8_t* keep(Bytes bytes);
  void clear();
  size_t state_bytes() const { return strings.state_bytes() + stacks.state_bytes() + kept_.bytes; }

  PoolTable strings;
  PoolTable stacks;

 private:
  // The copies, in blocks that are filled one after the other.
  struct Kept {
    std::vector<std::unique_ptr<uint8_t[]>> blocks;
    size_t left = 0;        // in the last block
    uint8_t* at = nullptr;  // there
    size_t bytes = 0;       // of all blocks
  };
  Kept kept_;
};

// The entries of one pool frame in the file's order; the decoder has checked them.
class StringPoolView {
 public:
  struct Entry {
    uint32_t id = 0;
    std::string_view text;  // may be anything but UTF-8
  };
  StringPoolView(uint32_t count, Bytes entries) : count_(count), left_(count), rest_(entries) {}

  uint32_t size() const { return count_; }
  bool next(Entry& out) {
    if (left_ == 0) return false;
    --left_;
    out.id = rest_.u32();
    const Bytes own = rest_.bytes(rest_.u32());
    out.text = {reinterpret_cast<const char*>(own.data()), own.size()};
    return true;
  }

 private:
  uint32_t count_;
  uint32_t left_;
  ByteReader rest_;
};

class StackPoolView {
 public:
  struct Entry {
    uint32_t id = 0;
    StackView stack;
  };
  StackPoolView(uint32_t count, Bytes entries) : count_(count), left_(count), rest_(entries) {}

  uint32_t size() const { return count_; }
  bool next(Entry& out) {
    if (left_ == 0) return false;
    --left_;
    out.id = rest_.u32();
    const uint32_t addresses = rest_.u32();
    out.stack = StackView(rest_.bytes(size_t{8} * addresses).data(), addresses);
    return true;
  }

 private:
  uint32_t count_;
  uint32_t left_;
  ByteReader rest_;
};

}  // namespace collect::dial9
