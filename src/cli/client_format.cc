// Terminal and raw forms of replies. Recursion is bounded by the parser's limit on nesting.
#include "cli/client_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "cli/client_json.h"

namespace sava::cli {
namespace {

void AppendTerminal(const Reply& reply, const std::string& indent, std::string* out);

std::string_view EmptyText(ReplyType type) {
  switch (type) {
    case ReplyType::kMap:
      return "(empty hash)\n";
    case ReplyType::kSet:
      return "(empty set)\n";
    case ReplyType::kPush:
      return "(empty push)\n";
    default:
      return "(empty array)\n";
  }
}

char Separator(ReplyType type) {
  switch (type) {
    case ReplyType::kMap:
      return '#';
    case ReplyType::kSet:
      return '~';
    default:
      return ')';
  }
}

size_t RowCount(const Reply& reply) {
  return reply.elements.size() / (reply.type == ReplyType::kMap ? 2 : 1);
}

// Whether an aggregate takes more than one line.
bool SpansRows(const Reply& reply) {
  if (!reply.is_aggregate() || RowCount(reply) == 0) return false;
  if (RowCount(reply) > 1) return true;
  return std::any_of(reply.elements.begin(), reply.elements.end(), SpansRows);
}

// "1) ", "2) " ... right-aligned; the first stands where the cursor is, the others behind `indent`.
// A map's value that takes several lines begins on its own line.
void AppendElements(const Reply& reply, const std::string& indent, std::string* out) {
  const bool is_map = reply.type == ReplyType::kMap;
  const size_t step = is_map ? 2 : 1;
  const size_t count = RowCount(reply);
  const size_t width = std::to_string(count).size();
  const std::string inner = indent + std::string(width + 2, ' ');
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) *out += indent;
    fmt::format_to(std::back_inserter(*out), "{:>{}}{} ", i + 1, width, Separator(reply.type));
    AppendTerminal(reply.elements[i * step], inner, out);
    if (!is_map) continue;
    out->pop_back();
    *out += " => ";
    const Reply& value = reply.elements[i * step + 1];
    if (SpansRows(value)) *out += "\n" + inner;
    AppendTerminal(value, inner, out);
  }
}

void AppendTerminal(const Reply& reply, const std::string& indent, std::string* out) {
  switch (reply.type) {
    case ReplyType::kStatus:
    case ReplyType::kVerbatim:
      *out += reply.text;
      break;
    case ReplyType::kError:
      *out += "(error) " + reply.text;
      break;
    case ReplyType::kInteger:
      *out += "(integer) " + base::IntText(reply.integer);
      break;
    case ReplyType::kString:
      *out += base::Quoted(reply.text);
      break;
    case ReplyType::kNil:
      *out += "(nil)";
      break;
    case ReplyType::kDouble:
      *out += "(double) " + reply.text;
      break;
    case ReplyType::kBool:
      *out += reply.integer != 0 ? "(true)" : "(false)";
      break;
    case ReplyType::kBigNumber:
      *out += "(big number) " + reply.text;
      break;
    default:
      if (reply.elements.empty()) {
        *out += EmptyText(reply.type);
      } else {
        AppendElements(reply, indent, out);
      }
      return;
  }
  *out += '\n';
}

// Without the final line feed, which only the whole reply gets.
void AppendRaw(const Reply& reply, std::string* out) {
  switch (reply.type) {
    case ReplyType::kInteger:
      *out += base::IntText(reply.integer);
      return;
    case ReplyType::kBool:
      *out += reply.integer != 0 ? "(true)" : "(false)";
      return;
    case ReplyType::kNil:
      return;
    case ReplyType::kMap:
      for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
        if (i > 0) *out += '\n';
        AppendRaw(reply.elements[i], out);
        *out += ' ';
        AppendRaw(reply.elements[i + 1], out);
      }
      return;
    case ReplyType::kArray:
    case ReplyType::kSet:
    case ReplyType::kPush:
      for (size_t i = 0; i < reply.elements.size(); ++i) {
        if (i > 0) *out += '\n';
        AppendRaw(reply.elements[i], out);
      }
      return;
    default:
      *out += reply.text;
  }
}

// "-> invalidate: "a", "b"": what client-side caching tells about keys that changed.
bool AppendInvalidation(const Reply& push, std::string* out) {
  if (push.elements.size() != 2 || push.elements[0].text != "invalidate") return false;
  *out += "-> invalidate: ";
  const Reply& keys = push.elements[1];
  if (!keys.is_aggregate()) *out += "all keys";
  for (size_t i = 0; i < keys.elements.size(); ++i) {
    if (i > 0) *out += ", ";
    *out += base::Quoted(keys.elements[i].text);
  }
  *out += '\n';
  return true;
}

}  // namespace

std::string FormatTerminal(const Reply& reply) {
  std::string out;
  if (reply.attributes != nullptr) {
    out += "(attributes)\n";
    AppendTerminal(*reply.attributes, "", &out);
  }
  AppendTerminal(reply, "", &out);
  return out;
}

std::string FormatRaw(const Reply& reply) {
  std::string out;
  AppendRaw(reply, &out);
  out += '\n';
  return out;
}

std::string FormatReply(const Reply& reply, OutputMode mode) {
  switch (mode) {
    case OutputMode::kRaw:
      return FormatRaw(reply);
    case OutputMode::kJson:
      return FormatJson(reply) + '\n';
    case OutputMode::kTerminal:
      break;
  }
  return FormatTerminal(reply);
}

std::string FormatPage(const Reply& reply) {
  const bool complete = reply.text.empty() || reply.text.ends_with('\n');
  return complete ? reply.text : reply.text + '\n';
}

std::string FormatPush(const Reply& push, OutputMode mode) {
  std::string out;
  if (mode == OutputMode::kTerminal && AppendInvalidation(push, &out)) return out;
  return FormatReply(push, mode);
}

}  // namespace sava::cli
