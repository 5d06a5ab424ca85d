#include "commands/redis/element_scan.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/glob.h"
#include "base/text.h"

namespace sava::commands {

bool ElementScan::Passes(std::string_view name) const {
  return !by_pattern || base::GlobMatch(pattern, name);
}

bool ParseScanCursor(std::string_view text, uint64_t* cursor) {
  if (!text.empty() && isspace(static_cast<unsigned char>(text[0])) != 0) return false;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  *cursor = strtoull(copy.c_str(), &end, 10);
  return *end == '\0' && errno != ERANGE;
}

bool ScanCursorArg(Context& context, ElementScan* scan) {
  if (ParseScanCursor(context.arg(2), &scan->cursor)) return true;
  context.Error(errors::kBadCursor);
  return false;
}

bool ScanOptionArgs(Context& context, bool knows_no_values, ElementScan* scan) {
  for (size_t i = 3; i < context.argc(); ++i) {
    const bool has_value = i + 1 < context.argc();
    if (has_value && context.ArgIs(i, "COUNT")) {
      if (!context.IntArg(++i, &scan->count)) return false;
      if (scan->count < 1) {
        context.Error(errors::kSyntax);
        return false;
      }
    } else if (has_value && context.ArgIs(i, "MATCH")) {
      scan->pattern = context.arg(++i);
      scan->by_pattern = scan->pattern != "*";
    } else if (knows_no_values && context.ArgIs(i, "NOVALUES")) {
      scan->no_values = true;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

void ReplyEmptyScan(Context& context) {
  context.reply().Array(2);
  context.reply().Bulk("0");
  context.reply().Array(0);
}

void FinishScan(Context& context, size_t mark, int64_t found, uint64_t next) {
  protocol::Reply& reply = context.reply();
  reply.ArrayAt(mark, found);
  char digits[24];
  const size_t size = base::FormatUint(next, digits);
  std::string head = "*2\r\n$" + base::IntText(static_cast<int64_t>(size)) + "\r\n";
  head.append(digits, size).append("\r\n");
  reply.out().InsertAt(mark, head);
}

}  // namespace sava::commands
