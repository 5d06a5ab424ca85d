// Line editing at a terminal: libedit with hints behind the cursor, completion, and an eye on the
// connection while the user thinks.
//
// libedit asks this class for every character. While it waits, a hint stands in grey behind the
// cursor; it is wiped before the character is handed over, so libedit's own picture of the line
// stays true. Not thread safe.
#pragma once

#include <histedit.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client_hints.h"
#include "cli/client_signals.h"

namespace sava::cli {

class Editor {
 public:
  struct Callbacks {
    std::function<std::string()> prompt;
    std::function<std::string(std::string_view line)> hint;
    std::function<Completions(std::string_view line)> complete;
    std::function<int()> idle_fd;  // watched beside the keyboard; -1: nothing to watch
    std::function<void()> on_idle;
  };
  enum class Result : uint8_t { kLine, kInterrupted, kEnd };

  // Takes over standard input and output, which must be terminals. `signals` outlives the editor.
  Editor(Signals* signals, Callbacks callbacks);
  ~Editor();
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  // kInterrupted: Ctrl-C; `line` is what had been typed.
  Result ReadLine(std::string* line);

  // For the arrow keys and the search; equal lines in a row count once.
  void Remember(const std::string& line);

  void set_hints(bool on) { hints_on_ = on; }

 private:
  static Editor* Self(EditLine* edit);
  static char* PromptCallback(EditLine* edit);
  static int ReadCallback(EditLine* edit, wchar_t* out);
  static unsigned char CompleteCallback(EditLine* edit, int key);

  void BindKeys();
  int ReadChar(wchar_t* out);
  // -1: stop reading the line, why_ says why. 0: go on.
  int OnSignal();
  void OnIdle();
  int DecodeChar(wchar_t* out);
  unsigned char Complete();
  void ListCandidates(const std::vector<std::string>& words);
  void Redraw();
  void DrawHint();
  void WipeHint();
  int HintColumn() const;
  std::string TextBeforeCursor() const;

  Signals* signals_;
  Callbacks callbacks_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  bool hints_on_;
  bool hint_shown_ = false;
  Result why_ = Result::kEnd;
};

}  // namespace sava::cli
