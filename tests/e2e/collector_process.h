// A real collectord on ports of its own, and what it takes to trace a program with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/child/child_process.h"

namespace collect::e2e {

using child::Arguments;
using child::ChildProcess;
using child::Ending;
using child::Environment;
using child::eventually;
using child::pause_briefly;
using child::read_text_file;
using child::run;
using child::Scratch;
using child::seconds;
using child::write_text_file;

// Programs of the build tree, by name.
std::string program(const std::string& name);         // bin/
std::string traced_program(const std::string& name);  // bin/e2e/
// For json_iso_codes where the size of a recording is not the point: as many documents as it reads
// otherwise, with a quarter of the calls.
std::string short_documents(const Scratch& scratch);
std::string agent_library();                         // lib/libcollect_agent.so
std::string tls_agent_library();                     // lib/libcollect_agent_tls.so, or empty
std::string deploy_script(const std::string& name);  // of the source tree
// The reference pack, or empty.
std::string reference_directory();

uint16_t free_port();
bool answers(uint16_t port);

class CollectorProcess {
 public:
  // Starts it and waits until both ports answer. `more` are further flags; `root` is a directory of
  // the scratch when it is not given.
  // `launcher` is a command that runs it, such as prlimit with a limit; `daemon` is the file that
  // is started, when it is not the one of the build tree.
  explicit CollectorProcess(const Scratch& scratch, const Arguments& more = {},
                            const std::string& root = "", Arguments launcher = {},
                            const std::string& daemon = program("collectord"));
  // SIGTERM, and a failure when it does not end in time.
  ~CollectorProcess();

  const std::string& root() const { return root_; }
  uint16_t ingest_port() const { return ingest_port_; }
  uint16_t control_port() const { return control_port_; }
  std::string ingest() const { return "127.0.0.1:" + std::to_string(ingest_port_); }
  std::string control() const { return "127.0.0.1:" + std::to_string(control_port_); }
  ChildProcess& process() { return *process_; }
  const Ending& stop(seconds limit = seconds(30));
  void start_again();  // after it ended: same root, same ports

  // What makes the agent stream a program to this collector.
  Environment tracing(const std::string& full_policy = "wait", int atf_version = 2) const;
  // collectctl with the address of this collector.
  Ending ctl(const Arguments& arguments, seconds limit = seconds(60)) const;

 private:
  void start();

  std::string scratch_;
  std::string root_;
  Arguments more_;
  Arguments launcher_;
  std::string daemon_;
  uint16_t ingest_port_;
  uint16_t control_port_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace collect::e2e
