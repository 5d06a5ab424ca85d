#include "commands/help.h"

#include <string>

#include "commands/grammar.h"
#include "commands/registry.h"

namespace sava::commands {

void HelpCommand(Context& context) {
  const Command* container = context.command_table().FindOwnName(context.arg(0));
  if (container == nullptr) {
    context.Error(errors::kSyntax);
    return;
  }
  protocol::Reply& reply = context.reply();
  const bool callable = container->spec->handler != nullptr;
  const auto lines = static_cast<int64_t>(container->subcommands.size() * 2) + (callable ? 3 : 1);
  reply.Array(lines);
  reply.Simple(base::ToUpper(container->full_name) +
               " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  if (callable) {
    reply.Simple("(no subcommand)");
    reply.Simple("    " + std::string(container->spec->summary));
  }
  for (const Command* sub : container->subcommands) {
    const auto arguments = ParseGrammar(sub->spec->arguments, sub->spec->keys.count);
    std::string line = base::ToUpper(sub->spec->name);
    if (arguments && !arguments.value().empty()) {
      line += ' ' + UsageText(arguments.value(), NameStyle::kAngles);
    }
    reply.Simple(line);
    reply.Simple("    " + std::string(sub->spec->summary));
  }
}

}  // namespace sava::commands
