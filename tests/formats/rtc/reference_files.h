// The reference pack, as the tests of this room name it.
#pragma once

#include "tests/formats/programs.h"
#include "tests/formats/reference_files.h"

namespace collect::rtc::testing {

using reference::file_bytes;
using reference::has_python;
using reference::PythonTool;
using reference::Ran;
using reference::reference_folder;
using reference::write_file;

}  // namespace collect::rtc::testing
