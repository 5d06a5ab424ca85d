// Rows of Stack Exchange's public dumps: one <row …/> on a line, read one after another.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <string_view>

namespace timeline {

class DumpReader {
 public:
  explicit DumpReader(const std::string& file) : in_(file) {}
  bool ok() const { return in_.good(); }
  // The next row's attributes, decoded; false at the end.
  bool Next(std::map<std::string, std::string>* attributes);
  // How much of the file was read, and its size, for a progress bar.
  std::int64_t position();

 private:
  std::ifstream in_;
  std::string line_;
};

// "2010-07-28T19:04:21.300" as Unix milliseconds; 0 when it is none.
std::int64_t DumpTime(const std::string& text);
// HTML as plain text of at most `most` bytes, cut between two characters.
std::string PlainText(std::string_view html, std::size_t most);

}  // namespace timeline
