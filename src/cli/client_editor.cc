// The libedit side of the interactive client.
#include "cli/client_editor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "base/text.h"
#include "cli/client_history.h"

namespace sava::cli {
namespace {

constexpr int kHistoryLines = static_cast<int>(HistoryFile::kMaxLines);

int TerminalColumns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// Hints need a terminal that moves its cursor and clears to the end of a line.
bool TerminalUnderstandsEscapes() {
  const char* name = std::getenv("TERM");
  return name != nullptr && *name != '\0' && std::strcmp(name, "dumb") != 0;
}

size_t CountCharacters(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string CommonPrefix(const std::vector<std::string>& words) {
  std::string prefix = words.front();
  for (const std::string& word : words) {
    size_t length = 0;
    while (length < prefix.size() && length < word.size() && prefix[length] == word[length]) {
      ++length;
    }
    prefix.resize(length);
  }
  return prefix;
}

void Write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

Editor::Editor(Signals* signals, Callbacks callbacks)
    : signals_(signals), callbacks_(std::move(callbacks)), hints_on_(TerminalUnderstandsEscapes()) {
  if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) std::setlocale(LC_CTYPE, "");
  edit_ = el_init("sava", stdin, stdout, stderr);
  el_set(edit_, EL_CLIENTDATA, this);
  el_set(edit_, EL_PROMPT, &Editor::PromptCallback);
  el_set(edit_, EL_GETCFN, &Editor::ReadCallback);
  history_ = history_init();
  HistEvent event;
  history(history_, &event, H_SETSIZE, kHistoryLines);
  history(history_, &event, H_SETUNIQUE, 1);
  el_set(edit_, EL_HIST, history, history_);
  BindKeys();
  el_source(edit_, nullptr);  // the user's own ~/.editrc has the last word
}

Editor::~Editor() {
  history_end(history_);
  el_end(edit_);
}

// libedit's own keys, and where its defaults surprise, those of a shell.
void Editor::BindKeys() {
  el_set(edit_, EL_EDITOR, "emacs");
  el_set(edit_, EL_ADDFN, "sava-complete", "Complete the word before the cursor",
         &Editor::CompleteCallback);
  struct Binding {
    const char* key;
    const char* command;
  };
  constexpr Binding kBindings[] = {
      {"^I", "sava-complete"},           {"^R", "em-inc-search-prev"},
      {"^W", "ed-delete-prev-word"},     {"^U", "vi-kill-line-prev"},
      {"\\e[3~", "ed-delete-next-char"}, {"\\e[H", "ed-move-to-beg"},
      {"\\eOH", "ed-move-to-beg"},       {"\\e[1~", "ed-move-to-beg"},
      {"\\e[F", "ed-move-to-end"},       {"\\eOF", "ed-move-to-end"},
      {"\\e[4~", "ed-move-to-end"},      {"\\e[1;5D", "ed-prev-word"},
      {"\\e[1;5C", "em-next-word"},
  };
  for (const Binding& binding : kBindings) {
    el_set(edit_, EL_BIND, binding.key, binding.command, nullptr);
  }
}

Editor* Editor::Self(EditLine* edit) {
  void* self = nullptr;
  el_get(edit, EL_CLIENTDATA, &self);
  return static_cast<Editor*>(self);
}

char* Editor::PromptCallback(EditLine* edit) {
  Editor* self = Self(edit);
  self->prompt_ = self->callbacks_.prompt();
  return self->prompt_.data();
}

int Editor::ReadCallback(EditLine* edit, wchar_t* out) { return Self(edit)->ReadChar(out); }

unsigned char Editor::CompleteCallback(EditLine* edit, int) { return Self(edit)->Complete(); }

Editor::Result Editor::ReadLine(std::string* line) {
  why_ = Result::kEnd;
  int count = 0;
  const char* text = el_gets(edit_, &count);
  if (text == nullptr || count <= 0) {
    const LineInfo* typed = el_line(edit_);
    line->assign(typed->buffer, typed->lastchar);
    if (why_ == Result::kInterrupted) Write("^C\n");
    return why_;
  }
  line->assign(text, static_cast<size_t>(std::strlen(text)));
  while (!line->empty() && (line->back() == '\n' || line->back() == '\r')) line->pop_back();
  return Result::kLine;
}

void Editor::Remember(const std::string& line) {
  HistEvent event;
  history(history_, &event, H_ENTER, line.c_str());
}

int Editor::ReadChar(wchar_t* out) {
  *out = L'\0';
  DrawHint();
  while (true) {
    pollfd watched[3] = {
        {STDIN_FILENO, POLLIN, 0}, {signals_->fd(), POLLIN, 0}, {callbacks_.idle_fd(), POLLIN, 0}};
    if (poll(watched, 3, -1) < 0) continue;
    if (watched[1].revents != 0 && OnSignal() < 0) {
      errno = EINTR;
      return -1;
    }
    if (watched[0].revents != 0) {
      WipeHint();
      return DecodeChar(out);
    }
    if (watched[2].revents != 0) OnIdle();
  }
}

int Editor::OnSignal() {
  switch (signals_->Next()) {
    case Signals::Event::kNone:
      return 0;
    case Signals::Event::kInterrupt:
      WipeHint();
      why_ = Result::kInterrupted;
      return -1;
    case Signals::Event::kTerminate:
      WipeHint();
      return -1;
    case Signals::Event::kSuspend:
      WipeHint();
      el_set(edit_, EL_PREP_TERM, 0);
      signals_->Suspend();
      el_set(edit_, EL_PREP_TERM, 1);
      el_resize(edit_);
      Redraw();
      return 0;
    case Signals::Event::kResize:
      WipeHint();
      el_resize(edit_);
      Write("\r\033[K");
      Redraw();
      return 0;
  }
  return 0;
}

void Editor::OnIdle() {
  WipeHint();
  Write("\r\033[K");
  callbacks_.on_idle();
  Redraw();
}

void Editor::Redraw() {
  el_set(edit_, EL_REFRESH);
  DrawHint();
}

// One character of UTF-8 from the keyboard; bytes that are none are dropped.
int Editor::DecodeChar(wchar_t* out) {
  char bytes[MB_LEN_MAX];
  size_t count = 0;
  while (true) {
    const ssize_t got = read(STDIN_FILENO, bytes + count, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return static_cast<int>(got);
    ++count;
    mbstate_t state{};
    const size_t length = mbrtowc(out, bytes, count, &state);
    const bool incomplete = length == static_cast<size_t>(-2);
    if (incomplete && count < sizeof bytes) continue;
    if (!incomplete && length != static_cast<size_t>(-1)) return 1;
    const char last = bytes[count - 1];
    count = 0;
    if (static_cast<unsigned char>(last) < 0x80) {
      *out = static_cast<wchar_t>(last);
      return 1;
    }
  }
}

std::string Editor::TextBeforeCursor() const {
  const LineInfo* line = el_line(edit_);
  return {line->buffer, line->cursor};
}

unsigned char Editor::Complete() {
  const std::string text = TextBeforeCursor();
  const Completions found = callbacks_.complete(text);
  if (found.words.empty()) return CC_ERROR;
  const std::string typed = text.substr(found.word_start);
  const std::string prefix = CommonPrefix(found.words);
  const bool unique = found.words.size() == 1;
  if (unique || prefix.size() > typed.size() ||
      (prefix.size() == typed.size() && prefix != typed)) {
    el_deletestr(edit_, static_cast<int>(CountCharacters(typed)));
    const std::string text_to_insert = unique ? prefix + ' ' : prefix;
    if (el_insertstr(edit_, text_to_insert.c_str()) != 0) return CC_ERROR;
    return CC_REFRESH;
  }
  ListCandidates(found.words);
  el_set(edit_, EL_REFRESH);
  return CC_NORM;
}

void Editor::ListCandidates(const std::vector<std::string>& words) {
  size_t widest = 0;
  for (const std::string& word : words) widest = std::max(widest, word.size());
  const size_t columns = std::max<size_t>(static_cast<size_t>(TerminalColumns()) / (widest + 2), 1);
  const size_t rows = (words.size() + columns - 1) / columns;
  std::string out = "\r\n";
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = row; i < words.size(); i += rows) {
      out += i + rows < words.size() ? fmt::format("{:<{}}", words[i], widest + 2) : words[i];
    }
    out += "\r\n";
  }
  Write(out);
}

// The cursor's column if it stands at the end of the line and the column is certain, else -1.
int Editor::HintColumn() const {
  const LineInfoW* line = el_wline(edit_);
  if (line->cursor != line->lastchar || line->cursor == line->buffer) return -1;
  const int columns = TerminalColumns();
  int column = static_cast<int>(CountCharacters(prompt_));
  bool plain = true;
  for (const wchar_t* c = line->buffer; c != line->cursor; ++c) {
    const int width = wcwidth(*c);
    if (width < 0) return -1;
    plain = plain && width == 1;
    column += width;
  }
  if (column >= columns && !plain) return -1;
  return column % columns;
}

void Editor::DrawHint() {
  if (!hints_on_ || hint_shown_) return;
  pollfd typed{STDIN_FILENO, POLLIN, 0};
  if (poll(&typed, 1, 0) > 0) return;
  const int column = HintColumn();
  const int room = TerminalColumns() - 1 - column;
  if (column < 0 || room < 8) return;
  std::string hint = callbacks_.hint(TextBeforeCursor());
  std::erase_if(hint, [](char c) { return c < ' ' || c > '~'; });
  if (hint.empty()) return;
  if (hint.size() > static_cast<size_t>(room)) {
    hint.resize(static_cast<size_t>(room) - 3);
    hint += "...";
  }
  Write(fmt::format("\033[90m{}\033[0m\033[{}D", hint, hint.size()));
  hint_shown_ = true;
}

void Editor::WipeHint() {
  if (!hint_shown_) return;
  Write("\033[K");
  hint_shown_ = false;
}

}  // namespace sava::cli
