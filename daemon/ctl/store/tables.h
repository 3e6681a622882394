// Tables of Parquet of a session, for the bucket.
#pragma once

#include "daemon/upload/part_upload.h"
#include "daemon/upload/store_request.h"

namespace collect::ctl {

// They are made below TMPDIR. kInvalidArgument: never of this session.
upload::WantedTables wanted_tables(upload::StoreTables which);

}  // namespace collect::ctl
