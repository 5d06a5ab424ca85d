#include "replication/wire.h"

#include <fmt/format.h>

#include "base/text.h"

namespace sava::replication {

using commands::Reader;

namespace {

// The number behind `mark` at `*at`, and its line's end passed. Negative: there is none.
int64_t TakeNumber(std::string_view bytes, size_t* at, char mark) {
  if (*at >= bytes.size() || bytes[*at] != mark) return -1;
  const size_t end = bytes.find('\r', *at);
  int64_t number = -1;
  if (end == std::string_view::npos || end + 1 >= bytes.size() || bytes[end + 1] != '\n') return -1;
  if (!base::ParseInt(bytes.substr(*at + 1, end - *at - 1), &number)) return -1;
  *at = end + 2;
  return number;
}

// "*2\r\n$4\r\nPING\r\n$", the number's digits, "\r\n", the argument and "\r\n".
constexpr std::string_view kPingHead = "*2\r\n$4\r\nPING\r\n$";
constexpr std::string_view kNothing = "*0\r\n";

// How long the argument of a PING of that length is; -1: there is no such PING.
int64_t ArgumentFor(size_t length) {
  for (size_t digits = 1; digits < 20; ++digits) {
    const size_t rest = kPingHead.size() + digits + 4;
    if (length < rest) return -1;
    const size_t argument = length - rest;
    if (fmt::formatted_size("{}", argument) == digits) return static_cast<int64_t>(argument);
  }
  return -1;
}

}  // namespace

std::optional<size_t> SplitCommand(std::string_view bytes, size_t most,
                                   std::vector<std::string_view>* words) {
  words->clear();
  size_t at = 0;
  const int64_t count = TakeNumber(bytes, &at, '*');
  if (count < 0) return std::nullopt;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = TakeNumber(bytes, &at, '$');
    if (size < 0 || bytes.size() - at < 2 || static_cast<uint64_t>(size) > bytes.size() - at - 2) {
      return std::nullopt;
    }
    if (words->size() < most) words->push_back(bytes.substr(at, static_cast<size_t>(size)));
    at += static_cast<size_t>(size) + 2;
  }
  return at;
}

Reader ReaderOf(std::string_view command) {
  // The names of most commands follow one another.
  thread_local std::string last;
  thread_local Reader last_reader = Reader::kStock;
  size_t at = 0;
  if (TakeNumber(command, &at, '*') <= 0) return Reader::kStock;
  const int64_t size = TakeNumber(command, &at, '$');
  if (size < 0 || static_cast<uint64_t>(size) > command.size() - at) return Reader::kStock;
  const std::string_view name = command.substr(at, static_cast<size_t>(size));
  if (name == last) return last_reader;
  if (base::EqualsNoCase(name, "restore")) {
    std::vector<std::string_view> words;
    const bool native = SplitCommand(command, 4, &words) && commands::RestoresNative(words);
    return native ? Reader::kStockWithModule : Reader::kStock;
  }
  last = name;
  last_reader = commands::ReaderOf(name);
  return last_reader;
}

// A length that no PING has is that of one behind an empty command.
Padding PaddingOf(size_t length) {
  Padding padding;
  if (length < kPingHead.size() + 5) {
    padding.head.assign(length - kPing.size(), '\n');
    padding.head += kPing;
    return padding;
  }
  int64_t argument = ArgumentFor(length);
  if (argument < 0) {
    padding.head = kNothing;
    argument = ArgumentFor(length - kNothing.size());
  }
  padding.head += fmt::format("{}{}\r\n", kPingHead, argument);
  padding.fill = static_cast<size_t>(argument);
  padding.line_end = true;
  return padding;
}

}  // namespace sava::replication
