// Records of the journal as text, and records made of text, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "journal/journal.h"

namespace sava::journal {

using TextWords = std::vector<std::string>;

inline std::string RespText(const TextWords& words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return out;
}

// The words of one command.
inline TextWords WordsOf(std::string_view resp) {
  const auto number = [&resp] {
    const size_t end = resp.find("\r\n");
    int64_t value = 0;
    if (end == std::string_view::npos || !base::ParseInt(resp.substr(1, end - 1), &value))
      value = 0;
    resp.remove_prefix(end + 2);
    return static_cast<size_t>(value);
  };
  TextWords words(number());
  for (std::string& word : words) {
    const size_t size = number();
    word = resp.substr(0, size);
    resp.remove_prefix(size + 2);
  }
  return words;
}

// "N:" and the words of the effects, with a blank after each but the last.
inline std::string TextOf(const Record& record) {
  std::string text = std::to_string(record.size()) + ":";
  for (const Effect& effect : record) {
    for (const std::string& word : WordsOf(effect.bytes)) text += word + " ";
  }
  text.pop_back();
  return text;
}

// A record of these commands, each with its database.
class MadeRecord {
 public:
  MadeRecord(uint64_t ticket, const std::vector<std::pair<uint32_t, TextWords>>& commands,
             Destinations to = kToAll)
      : headers_(commands.size()) {
    for (size_t i = 0; i < commands.size(); ++i) {
      const std::string resp = RespText(commands[i].second);
      bytes_ += resp;
      headers_[commands.size() - 1 - i] = {i == 0 ? ticket : 0, resp.size(), commands[i].first, to,
                                           i + 1 == commands.size()};
    }
  }
  Record record() const { return {&headers_.back(), bytes_.data()}; }

 private:
  std::vector<EffectHeader> headers_;  // the first is at the end
  std::string bytes_;
};

// Appends a record of commands of one word.
inline uint64_t AppendText(Journal& journal, size_t lane, const TextWords& commands,
                           uint64_t after) {
  for (const std::string_view word : commands) journal.Add(lane, {&word, 1}, 0);
  return journal.Append(lane, after);
}

}  // namespace sava::journal
