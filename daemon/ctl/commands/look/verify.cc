// collectctl verify: of files here, or of all that the URL of a store names.
#include "daemon/ctl/check/verify.h"

#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {
namespace {

int verify_store(const VerifyOptions& options) {
  upload::StoreRequest request;
  request.want = upload::StoreWant::kVerify;
  request.location.url = options.path;
  request.strict = options.strict;
  request.allow_incomplete = options.allow_incomplete;
  return become_store_program(std::move(request), options.json);
}

}  // namespace

void add_verify(const CommandGroup& group) {
  const Command command = group.add("verify", "Run every check; exit with 1 if one fails");
  struct Options {
    VerifyOptions verify;
    ColorChoice color = ColorChoice::kAuto;
  };
  const auto options = std::make_shared<Options>();
  add_capture(command, options->verify.path);
  command.json();
  add_color(command, options->color);
  command.flag("--strict", options->verify.strict, "Treat warnings as findings");
  command.flag("--allow-incomplete", options->verify.allow_incomplete,
               "Accept what is not complete, if what is there is valid");
  command.footer(
      "s3://BUCKET, or the URL of one session as collectctl sessions --store lists it, checks\n"
      "what is in a store; see collectctl upload --help.");
  command.run([options](const Invocation& invocation) {
    VerifyOptions& wanted = options->verify;
    if (!has_capture(wanted.path, invocation.json)) return kExitUsage;
    wanted.json = invocation.json;
    wanted.color = shows_color(options->color, invocation.json);
    wanted.progress = is_terminal(STDERR_FILENO);
    if (upload::is_store_url(wanted.path)) return verify_store(wanted);
    return verify(wanted, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
