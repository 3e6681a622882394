#include "tests/storage/power_loss_fs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

namespace collect::storage::test {
namespace {

constexpr size_t kSectorBytes = 512;
constexpr size_t kSectorsPerPage = 8;

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

class PowerLossFile final : public File {
 public:
  PowerLossFile(std::unique_ptr<File> file, std::shared_ptr<PowerLossFs::Inode> inode)
      : file_(std::move(file)), inode_(std::move(inode)) {}

  const std::string& path() const override { return file_->path(); }
  Result<uint64_t> size() override { return file_->size(); }
  Result<size_t> read_at(uint64_t offset, MutableBytes out) override {
    return file_->read_at(offset, out);
  }
  Status write_at(uint64_t offset, std::span<const Bytes> parts) override {
    const Status written = file_->write_at(offset, parts);
    PowerLossFs::Change change{.offset = offset};
    for (const Bytes part : parts) {
      change.bytes.insert(change.bytes.end(), part.begin(), part.end());
    }
    if (!written.ok()) {  // any part of it may be there: what is, counts
      auto there = file_->read_at(offset, change.bytes);
      change.bytes.resize(there.ok() ? *there : 0);
    }
    inode_->since.push_back(std::move(change));
    return written;
  }
  Status truncate(uint64_t bytes) override {
    COLLECT_TRY(file_->truncate(bytes));
    inode_->since.push_back({.cut = true, .offset = bytes});
    return {};
  }
  Status sync() override {
    COLLECT_TRY(file_->sync());
    for (const PowerLossFs::Change& change : inode_->since) {
      PowerLossFs::apply(change, inode_->synced);
    }
    inode_->since.clear();
    return {};
  }

 private:
  std::unique_ptr<File> file_;
  std::shared_ptr<PowerLossFs::Inode> inode_;
};

PowerLossFs::PowerLossFs(Fs& below, std::string base) : below_(&below), base_(std::move(base)) {
  load();
}

void PowerLossFs::load() {
  now_.clear();
  unsynced_.clear();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base_)) {
    std::shared_ptr<Inode>& inode = now_[entry.path().string()];
    if (entry.is_directory()) continue;
    inode = std::make_shared<Inode>();
    std::ifstream file(entry.path(), std::ios::binary);
    inode->synced.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  durable_ = now_;
}

void PowerLossFs::apply(const Change& change, std::vector<uint8_t>& bytes) {
  if (change.cut) {
    bytes.resize(change.offset);
    return;
  }
  if (change.bytes.empty()) return;
  bytes.resize(std::max<size_t>(bytes.size(), change.offset + change.bytes.size()));
  std::copy(change.bytes.begin(), change.bytes.end(),
            bytes.begin() + static_cast<ptrdiff_t>(change.offset));
}

void PowerLossFs::apply(const NameChange& change, Names& names) {
  if (!change.from.empty()) names.erase(change.from);
  if (change.removed) {
    names.erase(change.name);
  } else {
    names[change.name] = change.inode;
  }
}

void PowerLossFs::note(NameChange change) {
  apply(change, now_);
  unsynced_.push_back(std::move(change));
}

std::shared_ptr<PowerLossFs::Inode> PowerLossFs::inode_of(const std::string& path) {
  const auto known = now_.find(path);
  return known != now_.end() ? known->second : nullptr;
}

Result<std::unique_ptr<File>> PowerLossFs::open(const std::string& path, OpenMode mode) {
  auto file = below_->open(path, mode);
  if (!file.ok()) return file.error();
  if (mode == OpenMode::kCreate || mode == OpenMode::kCreatePrivate) {
    note({.name = path, .inode = std::make_shared<Inode>()});
  }
  auto inode = inode_of(path);
  COLLECT_CHECK(inode != nullptr);
  return std::unique_ptr<File>(std::make_unique<PowerLossFile>(std::move(*file), std::move(inode)));
}

Status PowerLossFs::make_directory(const std::string& path) {
  COLLECT_TRY(below_->make_directory(path));
  note({.name = path});
  return {};
}

Status PowerLossFs::rename(const std::string& from, const std::string& to) {
  COLLECT_TRY(below_->rename(from, to));
  note({.name = to, .inode = inode_of(from), .from = from});
  return {};
}

Status PowerLossFs::remove_file(const std::string& path) {
  COLLECT_TRY(below_->remove_file(path));
  note({.name = path, .removed = true});
  return {};
}

Status PowerLossFs::remove_directory(const std::string& path) {
  COLLECT_TRY(below_->remove_directory(path));
  note({.name = path, .removed = true});
  return {};
}

Status PowerLossFs::sync_directory(const std::string& path) {
  COLLECT_TRY(below_->sync_directory(path));
  std::erase_if(unsynced_, [&](const NameChange& change) {
    if (parent_of(change.name) != path) return false;
    apply(change, durable_);
    return true;
  });
  return {};
}

std::vector<uint8_t> PowerLossFs::survivor(const Inode& inode, Kept kept, uint64_t seed) {
  if (kept == Kept::kSynced || kept == Kept::kNames || inode.since.empty()) return inode.synced;
  std::vector<std::vector<uint8_t>> moments{inode.synced};
  for (const Change& change : inode.since) {
    moments.push_back(moments.back());
    apply(change, moments.back());
  }
  if (kept != Kept::kSome) return moments.back();
  std::minstd_rand random(static_cast<uint32_t>(seed % 2147483646u + 1));
  const auto any_moment = [&] { return random() % moments.size(); };
  std::vector<uint8_t> bytes(moments[any_moment()].size());
  for (size_t page = 0; page * kSectorBytes < bytes.size(); page += kSectorsPerPage) {
    const bool torn = random() % 4 == 0;
    size_t moment = any_moment();
    for (size_t sector = page; sector < page + kSectorsPerPage; ++sector) {
      if (torn) moment = any_moment();
      const std::vector<uint8_t>& from = moments[moment];
      const size_t begin = sector * kSectorBytes;
      const size_t end = std::min({begin + kSectorBytes, bytes.size(), from.size()});
      if (begin < end) {
        std::copy(from.begin() + static_cast<ptrdiff_t>(begin),
                  from.begin() + static_cast<ptrdiff_t>(end),
                  bytes.begin() + static_cast<ptrdiff_t>(begin));
      }
    }
  }
  return bytes;
}

void PowerLossFs::lose_power(Kept kept, uint64_t seed) {
  std::minstd_rand random(static_cast<uint32_t>(seed % 2147483646u + 1));
  Names names = durable_;
  for (const NameChange& change : unsynced_) {
    const bool keep = kept == Kept::kNames || kept == Kept::kEverything ||
                      (kept == Kept::kSome && random() % 2 == 0);
    if (keep) apply(change, names);
  }
  for (const auto& entry : std::filesystem::directory_iterator(base_)) {
    std::filesystem::remove_all(entry.path());
  }
  // What is in a directory whose name is lost is lost with it; a directory comes before its
  // names.
  for (const auto& [path, inode] : names) {
    if (!std::filesystem::is_directory(parent_of(path))) continue;
    if (inode == nullptr) {
      std::filesystem::create_directory(path);
      continue;
    }
    const std::vector<uint8_t> bytes = survivor(*inode, kept, random());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  load();
}

}  // namespace collect::storage::test
