// upload_once ENDPOINT SESSION [COLLECTOR EPOCH]: uploads a session to the fake server and ends;
// the server kills it where the test says so. It begins when its standard input ends. Without a
// collector it is the tests' own, and files have parts of a few bytes.
#include <cstdio>
#include <string>

#include "storage/fs/posix_fs.h"
#include "tests/daemon/upload/fake_s3.h"
#include "tests/daemon/upload/upload_fixture.h"

int main(int argc, char** argv) {
  using namespace collect;
  if (argc != 3 && argc != 5) return 2;
  const std::string directory = argv[2];
  const size_t leaf = directory.rfind('/', directory.rfind('/') - 1);
  const auto session_path =
      storage::parse_session_path(directory.substr(0, leaf), directory.substr(leaf + 1));
  if (!session_path) return 2;
  while (std::getchar() != EOF) {
  }
  storage::PosixFs fs;
  upload::StaticCredentials source(upload::test::FakeS3::credentials());
  upload::UploadSettings settings;
  settings.s3.endpoint = argv[1];
  settings.s3.bucket = upload::test::kBucket;
  if (argc == 3) settings.sizes = {1500, 700};
  const upload::PartName part =
      argc == 3 ? upload::test::kPart : upload::PartName{argv[3], argv[4]};
  const auto uploader = upload::Uploader::start(settings, {fs, storage::system_clock(), source});
  if (!uploader.ok() || !(*uploader)->add(*session_path, part).ok()) return 1;
  const bool idle = (*uploader)->wait_idle(60'000);
  const upload::UploadStatus status = (*uploader)->status();
  if (!status.problem.empty()) std::fprintf(stderr, "%s\n", status.problem.c_str());
  return idle && status.committed_sessions + status.present_sessions == 1 ? 0 : 1;
}
