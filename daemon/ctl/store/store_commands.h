// What collect-store does for collectctl and collectord: sessions in object storage (UPLOAD.md).
//
// Each is the whole of a run of the program, on its main thread.
#pragma once

#include <iosfwd>

#include "daemon/upload/store_request.h"

namespace collect::ctl {

// `upload`. 0: every session is committed. 1: some are not; a message says which and why. 2:
// nothing was begun.
int upload_sessions(const upload::StoreRequest& request, std::ostream& out, std::ostream& err);
// `download`. Parts whose sessions have the same name get a directory each, named after the
// collector. 0: every committed part is there, byte for byte. 1: not every one. 2: none was begun.
int download_parts(const upload::StoreRequest& request, std::ostream& out, std::ostream& err);
// `verify`: each part is downloaded, checked as `verify` checks a session, and removed again. 0:
// all hold. 1: one does not, or some are not committed. 2: none was begun.
int verify_parts(const upload::StoreRequest& request, std::ostream& out, std::ostream& err);
// `sessions`. 0: listed. 1: the manifest of one could not be read, which is listed all the same.
// 2: the store cannot be listed.
int list_parts(const upload::StoreRequest& request, std::ostream& out, std::ostream& err);
// Uploads what is sealed below the root, until it is killed. One StoreReport a line. 2: it could
// not begin; the report says why.
int follow_sessions(const upload::StoreRequest& request, std::ostream& out);

}  // namespace collect::ctl
