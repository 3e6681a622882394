// Samples and independent readers, as the tests of this room name them.
#pragma once

#include "tests/formats/programs.h"
#include "tests/formats/reference_files.h"

namespace collect::rtc::testing {

using reference::file_bytes;
using reference::files_with;
using reference::golden_folder;
using reference::has_python;
using reference::independent_programs;
using reference::kNoPack;
using reference::PythonTool;
using reference::Ran;
using reference::reference_folder;
using reference::sample_folders;
using reference::write_file;

}  // namespace collect::rtc::testing
