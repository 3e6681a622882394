// The captures that words_test.cc runs the commands on: small, the same on every machine, and each
// with something of everything that its format has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/atf/headers.h"
#include "storage/manifest/manifest.h"

namespace collect::ctl::testing {

using Octets = std::vector<uint8_t>;

// A session below `root`: three threads (the third has no events and no name), nested and recursive
// calls, an exception, a return without its call, an open call, detail records, losses of both
// lanes, markers, stalls, a window, a note, a clock comparison. Its directory.
std::filesystem::path small_session(const std::filesystem::path& root, atf::Version version);
// The same threads with other times and a function more, to compare with.
std::filesystem::path other_session(const std::filesystem::path& root);
// A change to the manifest of a session.
void change_manifest(const std::filesystem::path& session,
                     const std::function<void(storage::Manifest&)>& change);

// Every type of a field, as an event's own and as an element; optional ones without a value; texts
// and lists beyond what a line shows; units; more names than inspect lists; an event without a
// time, and one that is older than the one before it.
Octets dial9_of_everything();
// Polls and parks of two workers of a service.
Octets dial9_of_workers();
// Streams of every kind of value, with and without clock, gain, offset and name.
Octets rtc_of_everything();
Octets rtc_without_clock();
// Zones, scopes, every builtin event, arguments of every type.
Octets wtf_of_everything();
// One mark in each of so many zones.
Octets wtf_of_zones(size_t zones);

}  // namespace collect::ctl::testing
