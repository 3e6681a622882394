// collect-store: sessions into object storage, and back. collectctl becomes it for the commands
// that name a store, collectord starts it where it has one (daemon/upload/store_request.h).
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "daemon/ctl/store/store_commands.h"
#include "daemon/ctl/terminal/terminal.h"
#include "formats/core/threads.h"
#include "storage/fs/leftovers.h"
#include "storage/fs/standard_output.h"
#include "storage/fs/standard_streams.h"

namespace collect::ctl {
namespace {

int serve(const upload::StoreRequest& request) {
  switch (request.want) {
    case upload::StoreWant::kUpload:
      return upload_sessions(request, std::cout, std::cerr);
    case upload::StoreWant::kDownload:
      return download_parts(request, std::cout, std::cerr);
    case upload::StoreWant::kVerify:
      return verify_parts(request, std::cout, std::cerr);
    case upload::StoreWant::kList:
      return list_parts(request, std::cout, std::cerr);
    case upload::StoreWant::kFollow:
      break;
  }
  return 2;
}

// Reports a fault of this machine: memory, threads, descriptors.
int fault(const Error& error) {
  std::cerr << "collect-store: " << to_string(error) << "\n";
  return 1;
}

}  // namespace
}  // namespace collect::ctl

int main(int argc, char** argv) {
  using namespace collect;
  storage::hold_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  const auto request = upload::StoreRequest::parse(std::vector<std::string>(argv + 1, argv + argc));
  if (!request.ok()) {
    std::cerr << "collect-store: " << request.error().message << "\n";
    return 2;
  }
  // Its reports are for a program, and it is ended by a signal.
  int code = 0;
  Status done;
  if (request->want == upload::StoreWant::kFollow) {
    done = contain([&] { code = ctl::follow_sessions(*request, std::cout); });
    return done.ok() ? code : ctl::fault(done.error());
  }
  storage::remove_leftovers_on_signals();
  storage::StandardOutput output(std::cout);
  {
    ctl::PrintableStream out(std::cout), err(std::cerr);
    done = contain([&] { code = ctl::serve(*request); });
    if (!done.ok()) code = ctl::fault(done.error());
  }
  return output.finish("collectctl", code);
}
