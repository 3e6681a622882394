#include "daemon/collector/agents/process_attach.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/collector/agents/messages.h"
#include "daemon/inject/agent_library.h"
#include "daemon/inject/injector.h"
#include "daemon/inject/target.h"
#include "daemon/patch/module_plans.h"
#include "daemon/principal/secret.h"
#include "formats/core/text/printable.h"

namespace collect::daemon {
namespace {

constexpr std::chrono::milliseconds kAgentLook{10};

std::string user(uid_t uid) {
  return fmt::format("user {}", uid);
}

// "nginx (process 812)"
std::string name_of(const inject::Target& target) {
  return fmt::format("{} (process {})", printable(target.name), target.pid);
}

// The process is this user's, as look_at() finds; so its caller has to be, or root.
Status check_caller(const principal::Principal& caller) {
  using Kind = principal::Principal::Kind;
  if (caller.kind != Kind::kUid) {
    return Error{
        Code::kPermission,
        "processes can be attached to by a user of this machine alone, and the system does "
        "not say whose this call is: call through a Unix socket (collectord --control "
        "unix:/path), or use collectctl attach"};
  }
  const uid_t own = ::geteuid();
  if (caller.id == principal::Principal::of_uid(own).id ||
      caller.id == principal::Principal::of_uid(0).id) {
    return {};
  }
  return Error{Code::kPermission,
               fmt::format("this collector attaches to processes of {}, for that user and root: {} "
                           "or {} has to call, not user {}",
                           user(own), user(0), user(own), caller.id)};
}

Result<inject::Target> look_at(int32_t pid) {
  auto target = inject::look_at_target(pid);
  if (!target.ok() || target->uid == ::geteuid()) return target;
  return Error{Code::kPermission,
               fmt::format("{} belongs to {}, and this collector to {}: use collectctl attach {}",
                           name_of(*target), user(target->uid), user(::geteuid()), pid)};
}

Error with_name(const inject::Target& target, const Error& error) {
  return {error.code, fmt::format("{}: {}", name_of(target), error.message)};
}

Result<std::string> tag_of(const api::AttachProcessRequest& request) {
  if (!request.tag().empty()) return request.tag();
  auto secret = principal::make_secret();
  if (!secret.ok()) return secret;
  return "attach-" + secret->substr(0, 16);
}

// As a process reads it that works in another directory.
std::string absolute(const std::string& path) {
  std::error_code ignored;
  return path.empty() ? path : std::filesystem::absolute(path, ignored).string();
}

const char* when_full(api::Rule::WhenFull policy) {
  switch (policy) {
    case api::Rule::WHEN_FULL_WAIT:
      return "wait";
    case api::Rule::WHEN_FULL_OVERWRITE:
      return "overwrite";
    default:
      return "drop";
  }
}

}  // namespace

ProcessAttach::ProcessAttach(const Registry& registry, Options options, control::Methods& methods)
    : registry_(registry),
      options_(std::move(options)),
      token_file_(absolute(options_.token_file)) {
  serve(methods, &ProcessAttach::attach);
  serve(methods, &ProcessAttach::detach);
}

template <class Request, class Response>
void ProcessAttach::serve(control::Methods& methods,
                          Result<Response> (ProcessAttach::*act)(const Request&)) {
  methods.serve<control::CallOf<Request>, Response>([this, act](const auto& call, auto done) {
    if (const Status allowed = check_caller(call.caller); !allowed.ok()) {
      done(allowed.error());
      return;
    }
    if (is_stopping_) {
      done(Error{Code::kCancelled, "the collector stops"});
      return;
    }
    if (waiting_.fetch_add(1) >= kMaxProcessAttaches) {
      waiting_.fetch_sub(1);
      done(Error{Code::kExhausted, fmt::format("{} processes are being attached to or wait for it",
                                               kMaxProcessAttaches)});
      return;
    }
    const std::shared_ptr<void> place(nullptr, [this](void*) { waiting_.fetch_sub(1); });
    thread_.post(
        [this, act, request = call.request, done, place] {
          done(is_stopping_ ? Result<Response>(Error{Code::kCancelled, "the collector stops"})
                            : (this->*act)(request));
        },
        done);
  });
}

void ProcessAttach::stop() {
  is_stopping_ = true;
  thread_.join();
}

Result<api::AttachProcessResponse> ProcessAttach::attach(const api::AttachProcessRequest& request) {
  if (options_.asks_for_tls) {
    return Error{Code::kUnsupported,
                 "this collector takes agents within TLS, which one that is loaded into a process "
                 "does not speak: let collectctl attach record it"};
  }
  const auto target = look_at(request.pid());
  if (!target.ok()) return target.error();
  const auto library = inject::find_agent_library();
  if (!library.ok()) return library.error();
  const auto tag = tag_of(request);
  if (!tag.ok()) return tag.error();
  std::vector<std::string> patterns(request.modules().begin(), request.modules().end());
  if (patterns.empty()) patterns.emplace_back(patch::kProgramItself);
  const auto plans = patch::plans_of_modules(target->modules, patterns);
  if (!plans.ok()) return plans.error();
  std::vector<std::string> variables = {
      "COLLECT_CONNECT=" + options_.ingest, "COLLECT_TAG=" + *tag, "COLLECT_DRAIN=thread",
      std::string("COLLECT_FULL=") + when_full(request.when_full()),
      "COLLECT_PLANS=" + plans->folder.path()};
  if (!token_file_.empty()) variables.push_back("COLLECT_TOKEN_FILE=" + token_file_);
  if (request.max_rate() != 0) {
    variables.push_back(fmt::format("COLLECT_MAX_RATE={}", request.max_rate()));
  }
  const auto attached = inject::attach(
      *target, {*library, variables, patch::kAttachStart, [this] { return is_stopping_.load(); }});
  if (!attached.ok()) return with_name(*target, attached.error());
  auto agent = connected_agent(static_cast<uint32_t>(target->pid), *tag);
  if (!agent.ok()) {
    return with_name(
        *target, {agent.code(), fmt::format("{}: {}", agent.error().message, attached->message)});
  }
  spdlog::info("{} attached to {}", agent->name(), name_of(*target));
  api::AttachProcessResponse response;
  *response.mutable_agent() = std::move(*agent);
  response.set_functions(plans->functions);
  response.mutable_modules()->Add(plans->modules.begin(), plans->modules.end());
  response.mutable_left_out()->Add(plans->left_out.begin(), plans->left_out.end());
  response.set_stopped_threads(static_cast<uint32_t>(attached->threads));
  const auto stopped = std::chrono::duration_cast<std::chrono::nanoseconds>(attached->stopped);
  response.mutable_stopped()->set_seconds(stopped.count() / 1'000'000'000);
  response.mutable_stopped()->set_nanos(static_cast<int32_t>(stopped.count() % 1'000'000'000));
  return response;
}

Result<api::Agent> ProcessAttach::connected_agent(uint32_t pid, const std::string& tag) const {
  const auto deadline = std::chrono::steady_clock::now() + kAttachedAgentWait;
  while (std::chrono::steady_clock::now() < deadline && !is_stopping_) {
    for (const ingest::AgentSnapshot& agent : registry_.agents()) {
      if (agent.pid == pid && agent.tag == tag && is_up(agent)) return to_message(agent);
    }
    std::this_thread::sleep_for(kAgentLook);
  }
  return Error{Code::kUnavailable, "the agent did not reach the collector"};
}

Result<api::DetachProcessResponse> ProcessAttach::detach(const api::DetachProcessRequest& request) {
  const auto target = look_at(request.pid());
  if (!target.ok()) return target.error();
  const auto library = inject::find_agent_library();
  if (!library.ok()) return library.error();
  if (!target->has(*library)) {
    return Error{Code::kNotFound, name_of(*target) + " has no agent"};
  }
  const auto left = inject::attach(*target, {*library, {}, patch::kAttachStop, nullptr});
  if (!left.ok()) return with_name(*target, left.error());
  return api::DetachProcessResponse();
}

}  // namespace collect::daemon
