#include "admin/crash_report.h"

#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "admin/crash_stack.h"
#include "base/version.h"
#include "engine/engine_context.h"

namespace sava::admin {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr unsigned kSecondsToReport = 5;
constexpr int kMostFrames = 64;
constexpr size_t kMostArguments = 32;
constexpr size_t kMostOfArgument = 128;

// Where to report; set before the handlers are.
char log_path[4096];

// Two, of which one is written while the other may be read.
struct KeptInfo {
  char text[size_t{24} << 10];
  std::atomic<size_t> size{0};
};
KeptInfo kept_info[2];
std::atomic<int> newest_info{0};

std::atomic<pid_t> reporter{0};
std::atomic<int> crash_signal{0};
sigjmp_buf next_section;

// Writes without the help of anything that may wait.
class Out {
 public:
  explicit Out(int fd) : fd_(fd) {}

  Out& operator<<(std::string_view text) {
    for (const char c : text) Put(c);
    return *this;
  }
  Out& operator<<(uint64_t number) {
    char digits[20];
    size_t size = 0;
    do {
      digits[size++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (size > 0) Put(digits[--size]);
    return *this;
  }
  Out& Hex(uint64_t number, int digits = 1) {
    *this << "0x";
    for (int shift = 60; shift >= 0; shift -= 4) {
      if (shift / 4 < digits || number >> shift != 0) Put("0123456789abcdef"[number >> shift & 15]);
    }
    return *this;
  }
  // What cannot be printed as \xNN.
  Out& Quoted(std::string_view text) {
    for (const char c : text.substr(0, kMostOfArgument)) {
      if (c >= ' ' && c <= '~') {
        Put(c);
      } else {
        *this << "\\x";
        Put("0123456789abcdef"[static_cast<unsigned char>(c) >> 4]);
        Put("0123456789abcdef"[c & 15]);
      }
    }
    if (text.size() > kMostOfArgument) *this << "... (" << text.size() << " bytes)";
    return *this;
  }
  void Flush() {
    const char* from = buffer_;
    while (size_ > 0) {
      const ssize_t n = write(fd_, from, size_);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      from += n;
      size_ -= static_cast<size_t>(n);
    }
    size_ = 0;
  }

 private:
  void Put(char c) {
    buffer_[size_++] = c;
    if (size_ == sizeof buffer_) Flush();
  }

  const int fd_;
  size_t size_ = 0;
  char buffer_[512];
};

std::string_view SignalName(int number) {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

void TellSignal(Out& out, int number, const siginfo_t& info) {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  out << "Sava " << base::kVersion << " crashed by signal " << uint64_t(number) << " ("
      << SignalName(number) << "), code " << (info.si_code < 0 ? "-" : "")
      << uint64_t(info.si_code < 0 ? -int64_t{info.si_code} : int64_t{info.si_code}) << "\n";
  if (info.si_code <= 0) {
    out << "Sent by pid " << uint64_t(info.si_pid) << ", uid " << info.si_uid << "\n";
  } else {
    out << "Address ";
    out.Hex(reinterpret_cast<uintptr_t>(info.si_addr)) << "\n";
  }
  out << "Process " << uint64_t(getpid()) << ", thread " << uint64_t(gettid()) << " " << name
      << "\n";
}

void* CodeAddress(const ucontext_t& context) {
#if defined(__x86_64__)
  return reinterpret_cast<void*>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(context.uc_mcontext.pc);
#else
  static_cast<void>(context);
  return nullptr;
#endif
}

void TellRegisters(Out& out, const ucontext_t& context) {
  out << "--- Registers\n";
  int shown = 0;
  const auto tell = [&](std::string_view name, uint64_t value) {
    out << name << std::string_view("      ").substr(std::min<size_t>(name.size(), 5));
    out.Hex(value, 16) << (++shown % 4 == 0 ? "\n" : "  ");
  };
#if defined(__x86_64__)
  constexpr struct {
    std::string_view name;
    int number;
  } kNames[] = {{"rax", REG_RAX}, {"rbx", REG_RBX}, {"rcx", REG_RCX},     {"rdx", REG_RDX},
                {"rsi", REG_RSI}, {"rdi", REG_RDI}, {"rbp", REG_RBP},     {"rsp", REG_RSP},
                {"r8", REG_R8},   {"r9", REG_R9},   {"r10", REG_R10},     {"r11", REG_R11},
                {"r12", REG_R12}, {"r13", REG_R13}, {"r14", REG_R14},     {"r15", REG_R15},
                {"rip", REG_RIP}, {"efl", REG_EFL}, {"csgs", REG_CSGSFS}, {"err", REG_ERR}};
  for (const auto& one : kNames) {
    tell(one.name, static_cast<uint64_t>(context.uc_mcontext.gregs[one.number]));
  }
#elif defined(__aarch64__)
  for (int i = 0; i < 31; ++i) {
    const char name[] = {'x', static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
    tell({name, sizeof name}, context.uc_mcontext.regs[i]);
  }
  tell("sp", context.uc_mcontext.sp);
  tell("pc", context.uc_mcontext.pc);
  tell("pstate", context.uc_mcontext.pstate);
#else
  static_cast<void>(context);
  static_cast<void>(tell);
  out << "(not known on this processor)";
#endif
  if (shown % 4 != 0) out << "\n";
}

void TellFrame(Out& out, const SymbolTable& symbols, const void* address, bool exact) {
  out.Hex(reinterpret_cast<uintptr_t>(address), 12);
  const CodePlace place = FindCode(address);
  if (!place.module.empty()) {
    out << "  " << place.module << "+";
    out.Hex(place.offset);
    // What a frame holds is where it goes on, which may be behind the function's end.
    uint64_t within = 0;
    const uint64_t at = exact ? place.offset : place.offset - 1;
    const std::string_view name = place.own ? symbols.NameOf(at, &within) : std::string_view();
    if (!name.empty()) {
      out << "  " << name << "+";
      out.Hex(within);
    }
  }
  out << "\n";
}

// The frames of the handler itself come first; they are passed over if the place is among the rest.
void TellStack(Out& out, const ucontext_t& context) {
  out << "--- Stack (c++filt shows the names; addr2line -Cfpie FILE OFFSET the lines)\n";
  const SymbolTable symbols;
  const void* const place = CodeAddress(context);
  if (place != nullptr) TellFrame(out, symbols, place, true);
  out.Flush();
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  int first = 0;
  for (int i = 0; i < count; ++i) {
    if (frames[i] == place) first = i + 1;
  }
  for (int i = first; i < count; ++i) TellFrame(out, symbols, frames[i], false);
}

void TellCommand(Out& out) {
  out << "--- Running command\n";
  const engine::Invocation* const running = engine::Invocation::Running();
  if (running == nullptr) {
    out << "(none on this thread)\n";
    return;
  }
  const engine::Client& client = running->client();
  out << "client id=" << client.id << " addr=";
  out.Quoted(client.peer.addr) << " db=" << uint64_t(client.db) << " resp=" << uint64_t(client.resp)
                               << "\n";
  const commands::Args args = running->shown_args();
  out << "argc " << args.size() << "\n";
  for (size_t i = 0; i < std::min(args.size(), kMostArguments); ++i) {
    out << "argv[" << i << "] ";
    out.Quoted(args[i]) << "\n";
  }
}

void TellInfo(Out& out) {
  const KeptInfo& info = kept_info[newest_info.load(std::memory_order_acquire)];
  out << "--- INFO, at most a second old\n";
  for (const char c : std::string_view(info.text, info.size.load(std::memory_order_relaxed))) {
    if (c != '\r') out << std::string_view(&c, 1);
  }
}

void ByDefault(int number) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(number, &action, nullptr);
}

// Ends the process now, by this signal.
void End(int number) {
  ByDefault(number);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  raise(number);
}

void OnAlarm(int /*number*/) { End(crash_signal.load()); }

void SetAlarm() {
  struct sigaction action {};
  action.sa_handler = OnAlarm;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGALRM, &action, nullptr);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  alarm(kSecondsToReport);
}

// A section that crashes itself, over memory that is damaged, ends there; the next one follows.
template <typename Tell>
void Section(Out& out, const Tell& tell) {
  if (sigsetjmp(next_section, 1) == 0) {
    tell();
  } else {
    out << "\n(the rest cannot be read)\n";
  }
  out.Flush();
}

void Report(int number, const siginfo_t& info, const ucontext_t& context) {
  int fd = STDOUT_FILENO;
  if (log_path[0] != '\0') {
    fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) fd = STDERR_FILENO;
  }
  Out out(fd);
  Section(out, [&] {
    out << "\n=== CRASH REPORT BEGINS ===\n";
    TellSignal(out, number, info);
  });
  Section(out, [&] { TellRegisters(out, context); });
  Section(out, [&] { TellStack(out, context); });
  Section(out, [&] { TellCommand(out); });
  Section(out, [&] { TellInfo(out); });
  Section(out, [&] { out << "=== CRASH REPORT ENDS ===\n"; });
}

void OnCrash(int number, siginfo_t* info, void* context) {
  const pid_t self = gettid();
  pid_t other = 0;
  if (!reporter.compare_exchange_strong(other, self)) {
    if (other == self) siglongjmp(next_section, 1);
    while (true) pause();  // the thread that came first ends the process
  }
  crash_signal.store(number);
  SetAlarm();
  Report(number, *info, *static_cast<ucontext_t*>(context));
  // What the thread did is done again, and then has its usual end, with the core that belongs to
  // it; a signal that was sent has to be sent again.
  ByDefault(number);
  if (info->si_code <= 0 || number == SIGABRT) End(number);
}

}  // namespace

void InstallCrashReport(const std::string& path) {
  if (!kCrashReports) return;
  strncpy(log_path, path.c_str(), sizeof log_path - 1);
  NoteModules();
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs, which it must not do in the handler
  struct sigaction action {};
  action.sa_sigaction = OnCrash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int number : kSignals) sigaction(number, &action, nullptr);
}

void RemoveCrashReport() {
  if (!kCrashReports) return;
  for (const int number : kSignals) ByDefault(number);
}

void KeepInfoForCrash(std::string_view text) {
  const int next = 1 - newest_info.load(std::memory_order_relaxed);
  KeptInfo& info = kept_info[next];
  const size_t size = std::min(text.size(), sizeof info.text);
  memcpy(info.text, text.data(), size);
  info.size.store(size, std::memory_order_relaxed);
  newest_info.store(next, std::memory_order_release);
}

}  // namespace sava::admin
