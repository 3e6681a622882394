// How a session is in an RTC container: which streams there are and what their objects hold. A
// container is alone: it begins with the whole manifest, so that any one of a run can be read
// without the others. STORAGE.md "Containers" is the document.
//
//   manifest   json         the whole manifest: first, and last when the session is sealed
//   changes    json         a manifest that holds only what is new: a thread, a module, a window …
//   clock      uint64le     device clock in ns, with gain and offset a time since the epoch
//   index pages, detail pages   raw   PageHeader and the records, packed (codec 1) or as they are;
//                                on the clock
//   gaps       json         what a page says is missing before it
//   log        utf-8        a line for everything unusual
//   markers    annotate/utf-8   what a person said about a moment
//   dial9      raw          only where such a stream came: its whole frames, as they are
//   switches   raw          only where they were recorded: frames of times off the processor
#pragma once

#include <string_view>

namespace collect::storage {

inline constexpr std::string_view kManifestStream = "manifest";
inline constexpr std::string_view kChangesStream = "changes";
inline constexpr std::string_view kClockStream = "clock";
inline constexpr std::string_view kIndexPagesStream = "index pages";
inline constexpr std::string_view kDetailPagesStream = "detail pages";
inline constexpr std::string_view kGapsStream = "gaps";
inline constexpr std::string_view kLogStream = "log";
inline constexpr std::string_view kMarkersStream = "markers";

}  // namespace collect::storage
