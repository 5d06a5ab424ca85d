// Reading COMMAND DOCS and showing it.
#include "cli/client_docs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace sava::cli {
namespace {

// Calls take(key, value) for each pair of a RESP3 map or a RESP2 flat array.
template <typename Take>
void ForEachPair(const Reply& reply, Take take) {
  for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    take(reply.elements[i].text, reply.elements[i + 1]);
  }
}

ArgumentType TypeFrom(std::string_view text) {
  if (text == "pure-token") return ArgumentType::kToken;
  if (text == "oneof") return ArgumentType::kOneOf;
  if (text == "block") return ArgumentType::kBlock;
  if (text == "integer" || text == "double" || text == "unix-time") return ArgumentType::kNumber;
  return ArgumentType::kText;
}

std::vector<ArgumentDoc> ReadArguments(const Reply& reply);

ArgumentDoc ReadArgument(const Reply& reply) {
  ArgumentDoc argument;
  std::string display;
  ForEachPair(reply, [&](const std::string& key, const Reply& value) {
    if (key == "name") argument.name = value.text;
    if (key == "display_text") display = value.text;
    if (key == "type") argument.type = TypeFrom(value.text);
    if (key == "token") argument.token = value.text.empty() ? "\"\"" : value.text;
    if (key == "arguments") argument.arguments = ReadArguments(value);
    if (key != "flags") return;
    for (const Reply& flag : value.elements) {
      if (flag.text == "optional") argument.optional = true;
      if (flag.text == "multiple") argument.multiple = true;
      if (flag.text == "multiple_token") argument.multiple_token = true;
    }
  });
  if (!display.empty()) argument.name = display;
  return argument;
}

std::vector<ArgumentDoc> ReadArguments(const Reply& reply) {
  std::vector<ArgumentDoc> arguments;
  for (const Reply& element : reply.elements) arguments.push_back(ReadArgument(element));
  return arguments;
}

CommandDoc ReadCommand(std::string name, const Reply& reply) {
  CommandDoc doc;
  doc.name = std::move(name);
  ForEachPair(reply, [&](const std::string& key, const Reply& value) {
    if (key == "summary") doc.summary = value.text;
    if (key == "since") doc.since = value.text;
    if (key == "group") doc.group = value.text;
    if (key == "complexity") doc.complexity = value.text;
    if (key == "arguments") doc.arguments = ReadArguments(value);
    if (key != "subcommands") return;
    ForEachPair(value, [&](const std::string& full, const Reply& details) {
      const size_t bar = full.find('|');
      if (bar == std::string::npos) return;
      const std::string own = base::ToUpper(full.substr(bar + 1));
      doc.subcommands[own] = ReadCommand(doc.name + ' ' + own, details);
    });
  });
  return doc;
}

std::string Join(const std::vector<ArgumentDoc>& arguments, std::string_view between) {
  std::string out;
  for (const ArgumentDoc& argument : arguments) {
    if (!out.empty()) out += between;
    out += RenderArgument(argument);
  }
  return out;
}

std::string WithToken(const ArgumentDoc& argument) {
  if (argument.type == ArgumentType::kToken || argument.token.empty()) return RenderBody(argument);
  return argument.token + ' ' + RenderBody(argument);
}

void AppendField(std::string_view label, const std::string& value, std::string* out) {
  if (!value.empty()) *out += fmt::format("  {}: {}\n", label, value);
}

std::string SyntaxLine(const CommandDoc& doc) {
  const std::string arguments = RenderArguments(doc);
  return arguments.empty() ? doc.name : doc.name + ' ' + arguments;
}

std::string CommandHelp(const CommandDoc& doc) {
  std::string out = "\n  " + SyntaxLine(doc) + '\n';
  AppendField("summary", doc.summary, &out);
  AppendField("since", doc.since, &out);
  AppendField("group", doc.group, &out);
  AppendField("complexity", doc.complexity, &out);
  for (const auto& [name, sub] : doc.subcommands) {
    out += fmt::format("\n  {}\n", SyntaxLine(sub));
    AppendField("summary", sub.summary, &out);
  }
  out += '\n';
  return out;
}

std::string GroupHelp(const CommandDocs& docs, std::string_view group) {
  std::string out;
  for (const auto& [name, doc] : docs.commands()) {
    if (!base::EqualsNoCase(doc.group, group)) continue;
    out += fmt::format("\n  {}\n", SyntaxLine(doc));
    AppendField("summary", doc.summary, &out);
  }
  if (!out.empty()) return out + '\n';
  std::vector<std::string_view> groups;
  for (const auto& [name, doc] : docs.commands()) {
    if (doc.group.empty()) continue;
    if (std::find(groups.begin(), groups.end(), doc.group) == groups.end()) {
      groups.push_back(doc.group);
    }
  }
  std::sort(groups.begin(), groups.end());
  return fmt::format("No group '{}'. Groups: {}\n", group, fmt::join(groups, " "));
}

}  // namespace

CommandDocs CommandDocs::FromReply(const Reply& reply) {
  CommandDocs docs;
  const bool names_only = reply.type == ReplyType::kArray && !reply.elements.empty() &&
                          reply.elements.front().is_aggregate();
  if (names_only) {
    for (const Reply& row : reply.elements) {
      if (row.elements.empty()) continue;
      const std::string name = base::ToUpper(row.elements.front().text);
      docs.commands_[name].name = name;
    }
    return docs;
  }
  ForEachPair(reply, [&](const std::string& name, const Reply& details) {
    const std::string upper = base::ToUpper(name);
    docs.commands_[upper] = ReadCommand(upper, details);
  });
  return docs;
}

const CommandDoc* CommandDocs::Find(const std::vector<std::string>& words, size_t* consumed) const {
  *consumed = 0;
  if (words.empty()) return nullptr;
  const auto found = commands_.find(base::ToUpper(words[0]));
  if (found == commands_.end()) return nullptr;
  *consumed = 1;
  if (words.size() > 1) {
    const auto sub = found->second.subcommands.find(base::ToUpper(words[1]));
    if (sub != found->second.subcommands.end()) {
      *consumed = 2;
      return &sub->second;
    }
  }
  return &found->second;
}

std::string RenderBody(const ArgumentDoc& argument) {
  switch (argument.type) {
    case ArgumentType::kToken:
      return argument.token;
    case ArgumentType::kBlock:
      return Join(argument.arguments, " ");
    case ArgumentType::kOneOf: {
      const bool enclosed = argument.optional && argument.token.empty() && !argument.multiple;
      const std::string choices = Join(argument.arguments, " | ");
      return enclosed ? choices : '<' + choices + '>';
    }
    default:
      return argument.name;
  }
}

std::string RenderRepetition(const ArgumentDoc& argument) {
  return '[' + (argument.multiple_token ? WithToken(argument) : RenderBody(argument)) + " ...]";
}

std::string RenderArgument(const ArgumentDoc& argument) {
  std::string out = WithToken(argument);
  if (argument.multiple) out += ' ' + RenderRepetition(argument);
  return argument.optional ? '[' + out + ']' : out;
}

std::string RenderArguments(const CommandDoc& doc) {
  if (doc.arguments.empty() && !doc.subcommands.empty()) {
    std::string out;
    for (const auto& [name, sub] : doc.subcommands) out += (out.empty() ? "<" : " | ") + name;
    return out + '>';
  }
  return Join(doc.arguments, " ");
}

std::string HelpText(const CommandDocs& docs, const std::vector<std::string>& words) {
  if (docs.empty()) return "The server did not tell about its commands (COMMAND DOCS).\n";
  if (words.front().starts_with('@')) return GroupHelp(docs, words.front().substr(1));
  size_t consumed = 0;
  const CommandDoc* doc = docs.Find(words, &consumed);
  if (doc == nullptr || consumed < std::min<size_t>(words.size(), 2)) {
    return fmt::format("No command '{}'. Tab completes names; help @string lists a group.\n",
                       fmt::join(words, " "));
  }
  return CommandHelp(*doc);
}

}  // namespace sava::cli
