// The lines typed in earlier sessions: a text file, one line each, oldest first.
//
// A line is appended as soon as it is entered, so sessions side by side keep each other's lines and
// a crash loses none. The file is readable by its owner only; lines that carry a password are never
// written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sava::cli {

class HistoryFile {
 public:
  static constexpr size_t kMaxLines = 1000;

  // An empty path: nothing is read or kept.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  // $SAVA_HISTORY if set, else ~/.sava_history; empty if there is no home.
  static std::string DefaultPath();

  // The latest kMaxLines lines. Shortens a file that has grown to twice that.
  std::vector<std::string> Load();

  void Append(std::string_view line);

 private:
  void Rewrite(const std::vector<std::string>& lines);

  std::string path_;
};

// Whether a command line carries a secret (AUTH, HELLO ... AUTH, ACL SETUSER, MIGRATE ... AUTH,
// CONFIG SET of a password), also when its quotes do not balance.
bool CarriesSecret(std::string_view line);

}  // namespace sava::cli
