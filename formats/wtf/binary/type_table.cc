#include "formats/wtf/binary/type_table.h"

#include <fmt/core.h>

#include <algorithm>

namespace collect::wtf {
namespace {

std::string quoted(std::string_view name) {
  constexpr size_t kShown = 80;
  std::string text(1, '\'');
  text += safe_text(name.substr(0, kShown));
  text += name.size() > kShown ? "…'" : "'";
  return text;
}

}  // namespace

TypeTable::TypeTable() {
  const Builtin& known = builtin(Role::kDefine);
  auto type = std::make_unique<EventType>();
  type->wire_id = kDefineWireId;
  type->event_class = known.event_class;
  type->flags = known.flags;
  type->name = known.name;
  type->signature = known.signature;
  type->arguments = parse_signature(known.signature).value();
  type->finish();
  by_wire_id_.resize(kDefineWireId + 1);
  by_wire_id_[kDefineWireId] = type.get();
  first_of_name_[type->name] = type.get();
  types_.push_back(std::move(type));
}

void TypeTable::define(const Definition& definition, uint64_t offset, Findings& findings) {
  const EventType* const old = find(definition.wire_id);
  const bool same = old != nullptr && old->event_class == definition.event_class &&
                    old->flags == definition.flags && old->name == definition.name &&
                    old->signature == definition.signature;
  if (same) return;
  if (definition.wire_id == kDefineWireId) {
    if (old->name != definition.name) {
      findings.add(Severity::kError, Rule::kDefineReserved, offset,
                   "wire id 1 is wtf.event#define and cannot become " + quoted(definition.name));
    }
    return;
  }
  const auto refuse = [&](Severity severity, Rule rule, std::string why) {
    findings.add_lazily(severity, rule, offset, [&] {
      return fmt::format("event type {} with wire id {}: {}", quoted(definition.name),
                         definition.wire_id, why);
    });
    if (old != nullptr) by_wire_id_[definition.wire_id] = nullptr;
  };
  bool odd_names = false;
  auto arguments = parse_signature(definition.signature, &odd_names);
  if (!arguments) {
    const bool limit = arguments.code() == Code::kLimit;
    return refuse(Severity::kError, limit ? Rule::kLimit : Rule::kDefinition,
                  arguments.error().message);
  }
  const size_t bytes = sizeof(EventType) +
                       2 * (definition.name.size() + definition.signature.size()) +
                       arguments->size() * sizeof(Argument);
  if (types_.size() >= kMaxDefinitions || bytes > kMaxDefinitionBytes - bytes_) {
    return refuse(Severity::kError, Rule::kLimit, "more definitions than this reader keeps");
  }
  bytes_ += bytes;
  auto type = std::make_unique<EventType>();
  type->wire_id = definition.wire_id;
  type->event_class = definition.event_class;
  type->flags = definition.flags;
  type->name = definition.name;
  type->signature = definition.signature;
  type->arguments = std::move(arguments).value();
  type->index = static_cast<uint32_t>(types_.size());
  type->finish();
  if (old != nullptr) {
    findings.add_lazily(Severity::kWarning, Rule::kRedefinition, offset, [&] {
      return fmt::format("wire id {} was {} and is now {}", definition.wire_id, quoted(old->name),
                         quoted(definition.name));
    });
  }
  remark(*type, odd_names, offset, findings);
  if (by_wire_id_.size() <= type->wire_id) by_wire_id_.resize(type->wire_id + 1);
  by_wire_id_[type->wire_id] = type.get();
  types_.push_back(std::move(type));
}

// What is unusual about a type that can be used.
void TypeTable::remark(const EventType& type, bool odd_names, uint64_t offset, Findings& findings) {
  if (odd_names) {
    findings.add_lazily(Severity::kWarning, Rule::kDefinitionName, offset, [&] {
      return fmt::format("event type {}: an argument name is repeated, or cut at an odd character",
                         quoted(type.name));
    });
  }
  if (has_line_end(type.name)) {
    findings.add_lazily(Severity::kWarning, Rule::kEventName, offset, [&] {
      return fmt::format(
          "event type {}: what follows a line end in a name is compiled as code by the published "
          "viewer",
          quoted(type.name));
    });
  }
  const auto [first, is_new] = first_of_name_.emplace(type.name, &type);
  if (!is_new && first->second->arguments != type.arguments) {
    findings.add_lazily(Severity::kWarning, Rule::kRedefinition, offset, [&] {
      return fmt::format(
          "event type {} is defined again with other arguments; the published viewer reads both "
          "with the first ones",
          quoted(type.name));
    });
  }
  for (const Builtin& known : builtins()) {
    if (known.name != type.name || known.role == type.role) continue;
    const bool unflagged = (type.flags & kFlagBuiltin) == 0;
    const bool zone = known.role == Role::kZoneCreate || known.role == Role::kZoneSet ||
                      known.role == Role::kZoneDelete;
    if (unflagged && zone) {
      findings.add(
          Severity::kWarning, Rule::kZoneBuiltin, offset,
          fmt::format("event type {} is defined without the BUILTIN flag and has no effect",
                      quoted(type.name)));
    } else {
      findings.add(Severity::kWarning, Rule::kBuiltinSignature, offset,
                   fmt::format("event type {} is defined with arguments that are not its own",
                               quoted(type.name)));
    }
  }
}

}  // namespace collect::wtf
