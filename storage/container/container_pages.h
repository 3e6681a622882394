// What the containers of a session that is recovered have of it. STORAGE.md "Containers".
//
// Containers are read in windows that overlap by more than a page takes: memory is bounded, and a
// page may come twice. Damage in a container costs what it touches: each page has its checksum.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "formats/rtc/read/reader.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_types.h"

namespace collect::storage {

// A page as an object of a container has it; its records are borrowed from `object` or `unpacked`,
// or are in `place`, where that has as many bytes as they. kDamaged: it is none, or does not have
// its checksum.
Result<Page> captured_page(Bytes object, std::vector<uint8_t>& unpacked, MutableBytes place = {});

// Where a container has an object.
struct ObjectPlace {
  uint32_t container = 0;  // its number
  uint64_t offset = 0;     // of the object's first frame
  uint64_t end = 0;        // behind its last one
};
using OnObject = std::function<Status(const rtc::Object&, const ObjectPlace&)>;

// Every object of a container in the directory, some of them twice. Of one that cannot be read,
// none.
Status read_container_objects(Fs& fs, const std::string& directory, uint32_t container,
                              const OnObject& on_object);

// Reads all containers in the directory, oldest first. A container that cannot be read is left out.
Status read_container_pages(Fs& fs, const std::string& directory,
                            const std::function<Status(const Page&)>& on_page);

// The newest whole manifest in them, with the modules that came later; for a session whose own
// cannot be read.
Result<std::optional<Manifest>> newest_container_manifest(Fs& fs, const std::string& directory);

}  // namespace collect::storage
