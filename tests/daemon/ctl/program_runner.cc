#include "tests/daemon/ctl/program_runner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace collect::ctl {

ProgramRunner::ProgramRunner() {
  ::mkdir(directory_.c_str(), 0700);
  ::mkdir(runtime_.c_str(), 0700);
}

void ProgramRunner::start(const std::vector<std::string>& arguments) {
  child::write_text_file(scratch_ / "stdin", input);
  std::vector<std::string> command = {COLLECTCTL};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::map<std::string, std::string> given = environment;
  given.emplace("XDG_RUNTIME_DIR", runtime_);
  const int file = ::open((scratch_ / "stdin").c_str(), O_RDONLY | O_CLOEXEC);
  program_.emplace(
      scratch_.path(), command, given,
      child::Setting{.folder = directory_, .input = file, .output = output, .errors = errors});
  ::close(file);
}

Ran ProgramRunner::finish() {
  const child::Ending& ending = program_->wait(child::seconds(120));
  return {ending.signal != 0 ? 128 + ending.signal : ending.exit_code, ending.output,
          ending.errors};
}

Ran ProgramRunner::run(const std::vector<std::string>& arguments) {
  start(arguments);
  return finish();
}

}  // namespace collect::ctl
