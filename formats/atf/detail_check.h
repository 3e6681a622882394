// The record pass behind check.h: a detail file against itself and against its index.
#pragma once

#include "formats/atf/check.h"

namespace collect::atf {

// Fills report.detail and adds findings. `index` is null when the file is checked alone; else
// report.links is the number of its forward links.
void check_detail_file(Bytes file, const IndexReader* index, ThreadReport& report);

}  // namespace collect::atf
