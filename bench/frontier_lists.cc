// The URL scheduler as document S1 builds it, to be compared with ours: hosts in a linked queue,
// each host's URLs in a linked list ordered by depth. Costs are the document's on purpose: finding
// a host turns the whole queue, an insertion looks at every position from the list's beginning
// again.
//
//   sava_frontier_lists FILE [-l]     depth-first; writes FILE-lists-out.txt [and
//   FILE-lists-access.log]
//
// Cells and items are allocated one by one, as there. The access log has the accesses of which the
// document's chapter 5.2 tells: an item's cells on the way to its position, and the item itself.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "cli/frontier_access_log.h"
#include "cli/frontier_files.h"
#include "cli/frontier_script.h"
#include "types/frontier/url.h"

namespace {

using sava::cli::AccessLog;
using sava::cli::ScriptReader;
using sava::cli::ScriptStep;
using sava::cli::ScriptVerb;

// ---- the log ----

struct Tracer {
  AccessLog* log = nullptr;
  uint64_t phase = 0;

  void Add(uint64_t id, bool write, const void* address, size_t size) const {
    if (log == nullptr) return;
    log->Add({phase, id, reinterpret_cast<uintptr_t>(address), size, write});
  }
};

// Where the accesses of one structure are told.
struct Trace {
  const Tracer* tracer = nullptr;
  uint64_t cells = 0;  // ids
  uint64_t items = 0;

  template <typename T>
  void ReadCell(const T* cell) const {
    tracer->Add(cells, false, cell, sizeof(T));
  }
  template <typename T>
  void WriteCell(const T* cell) const {
    tracer->Add(cells, true, cell, sizeof(T));
  }
  template <typename T>
  void ReadItem(const T* item) const {
    tracer->Add(items, false, item, sizeof(T));
  }
  template <typename T>
  void WriteItem(const T* item) const {
    tracer->Add(items, true, item, sizeof(T));
  }
};

// ---- the two errors (chapter 4) ----

struct EmptyError : std::logic_error {
  EmptyError() : std::logic_error("the structure is empty") {}
};

struct InvalidPosition : std::logic_error {
  InvalidPosition(size_t position, size_t last)
      : std::logic_error(fmt::format("invalid position {}, valid 1..{}", position, last)) {}
};

// ---- queue and list (2.1.1, 2.1.2) ----

template <typename T>
struct Cell {
  T* item = nullptr;
  Cell* next = nullptr;
};

template <typename T>
class LinkedQueue {
 public:
  explicit LinkedQueue(const Trace& trace) : trace_(trace), head_(new Cell<T>), tail_(head_) {
    trace_.WriteCell(head_);
  }
  ~LinkedQueue() {
    while (length_ > 0) PopFront();
    delete head_;
  }
  LinkedQueue(const LinkedQueue&) = delete;
  LinkedQueue& operator=(const LinkedQueue&) = delete;

  size_t size() const { return length_; }

  void PushBack(const T& item) {
    tail_->next = new Cell<T>{new T(item), nullptr};
    tail_ = tail_->next;
    trace_.WriteCell(tail_);
    trace_.WriteItem(tail_->item);
    ++length_;
  }

  T PopFront() {
    if (length_ == 0) throw EmptyError();
    Cell<T>* cell = head_->next;
    trace_.ReadCell(cell);
    trace_.ReadItem(cell->item);
    T item = *cell->item;
    head_->next = cell->next;
    trace_.WriteCell(head_);
    if (cell == tail_) tail_ = head_;
    delete cell->item;
    delete cell;
    --length_;
    return item;
  }

 private:
  Trace trace_;
  Cell<T>* head_;
  Cell<T>* tail_;
  size_t length_ = 0;
};

template <typename T>
class LinkedList {
 public:
  explicit LinkedList(const Trace& trace) : trace_(trace), head_(new Cell<T>), tail_(head_) {
    trace_.WriteCell(head_);
  }
  ~LinkedList() {
    Clear();
    delete head_;
  }
  LinkedList(const LinkedList&) = delete;
  LinkedList& operator=(const LinkedList&) = delete;

  size_t size() const { return length_; }

  // Positions count from 1.
  const T& Get(size_t position) const {
    if (length_ == 0) throw EmptyError();
    if (position == 0 || position > length_) throw InvalidPosition(position, length_);
    const Cell<T>* cell = head_->next;
    trace_.ReadCell(cell);
    for (size_t i = 1; i < position; ++i) {
      cell = cell->next;
      trace_.ReadCell(cell);
    }
    trace_.ReadItem(cell->item);
    return *cell->item;
  }

  void PushBack(const T& item) {
    tail_->next = new Cell<T>{new T(item), nullptr};
    tail_ = tail_->next;
    Added(tail_);
  }

  void InsertAt(size_t position, const T& item) {
    if (position == 0 || position > length_ + 1) throw InvalidPosition(position, length_ + 1);
    Cell<T>* before = head_;
    trace_.ReadCell(before);
    for (size_t i = 1; i < position; ++i) {
      before = before->next;
      trace_.ReadCell(before);
    }
    before->next = new Cell<T>{new T(item), before->next};
    if (before == tail_) tail_ = before->next;
    Added(before->next);
  }

  T PopFront() {
    if (length_ == 0) throw EmptyError();
    Cell<T>* cell = head_->next;
    trace_.ReadCell(cell);
    trace_.ReadItem(cell->item);
    T item = *cell->item;
    head_->next = cell->next;
    if (cell == tail_) tail_ = head_;
    delete cell->item;
    delete cell;
    --length_;
    return item;
  }

  void Clear() {
    while (head_->next != nullptr) {
      Cell<T>* cell = head_->next;
      head_->next = cell->next;
      delete cell->item;
      delete cell;
    }
    tail_ = head_;
    length_ = 0;
  }

 private:
  void Added(const Cell<T>* cell) {
    trace_.WriteCell(cell);
    trace_.WriteItem(cell->item);
    ++length_;
  }

  Trace trace_;
  Cell<T>* head_;
  Cell<T>* tail_;
  size_t length_ = 0;
};

// ---- URLs and hosts (2.1.3, 2.1.4) ----

struct Url {
  uint32_t depth = 0;
  std::string host;
  std::string rest;  // path and query

  bool operator==(const Url& other) const { return rest == other.rest && host == other.host; }
};

struct Host {
  std::string name;
  LinkedList<Url>* urls = nullptr;
};

class Scheduler {
 public:
  Scheduler(const Tracer* tracer, sava::cli::OutFile* out)
      : tracer_(tracer),
        out_(out),
        hosts_({tracer, sava::cli::kQueueCells, sava::cli::kHostItems}) {}
  ~Scheduler() { ClearAll(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void Add(const Url& url) {
    LinkedList<Url>* urls = Find(url.host);
    if (urls == nullptr) {
      const uint64_t number = ++known_;
      urls = new LinkedList<Url>({tracer_, sava::cli::CellsOf(number), sava::cli::UrlsOf(number)});
      urls->PushBack(url);
      hosts_.PushBack({url.host, urls});
      return;
    }
    if (urls->size() == 0) {
      urls->PushBack(url);
      return;
    }
    for (size_t i = 1; i <= urls->size(); ++i) {
      const Url& present = urls->Get(i);
      if (present == url) return;
      if (present.depth > url.depth) {
        urls->InsertAt(i, url);
        return;
      }
    }
    urls->InsertAt(urls->size() + 1, url);
  }

  void Schedule(uint64_t count) {
    for (size_t i = hosts_.size(); i > 0; --i) {
      const Host host = hosts_.PopFront();
      while (count > 0 && host.urls->size() > 0) {
        Print(host.urls->PopFront());
        --count;
      }
      hosts_.PushBack(host);
    }
  }

  void ScheduleHost(const std::string& name, uint64_t count) {
    LinkedList<Url>* urls = Find(name);
    if (urls == nullptr) return;
    for (; count > 0 && urls->size() > 0; --count) Print(urls->PopFront());
  }

  void ShowHost(const std::string& name) {
    const LinkedList<Url>* urls = Find(name);
    if (urls == nullptr) return;
    for (size_t i = 1; i <= urls->size(); ++i) Print(urls->Get(i));
  }

  void ListHosts() {
    for (size_t i = hosts_.size(); i > 0; --i) {
      const Host host = hosts_.PopFront();
      out_->Append(host.name + "\n");
      hosts_.PushBack(host);
    }
  }

  void ClearHost(const std::string& name) {
    if (LinkedList<Url>* urls = Find(name)) urls->Clear();
  }

  void ClearAll() {
    while (hosts_.size() > 0) delete hosts_.PopFront().urls;
    known_ = 0;
  }

 private:
  // Takes every host out of the queue and puts it back.
  LinkedList<Url>* Find(const std::string& name) {
    LinkedList<Url>* found = nullptr;
    for (size_t i = hosts_.size(); i > 0; --i) {
      const Host host = hosts_.PopFront();
      if (host.name == name) found = host.urls;
      hosts_.PushBack(host);
    }
    return found;
  }

  void Print(const Url& url) {
    sava::types::AppendUrl(url.host, url.rest, out_->buffer());
    out_->Append("\n");
  }

  const Tracer* tracer_;
  sava::cli::OutFile* out_;
  LinkedQueue<Host> hosts_;
  uint64_t known_ = 0;
};

// ---- the program (2.3.2) ----

std::string HostName(std::string_view text) {
  std::vector<char> room(sava::types::UrlRoom(text.size()));
  return std::string(sava::types::NormalizeUrlHost(sava::types::UrlNorm::kUfmg, text, room.data()));
}

void Execute(const ScriptStep& step, Scheduler* scheduler) {
  switch (step.verb) {
    case ScriptVerb::kAddUrls:
      break;  // its URLs are steps of their own
    case ScriptVerb::kScheduleAll:
      return scheduler->Schedule(UINT64_MAX);
    case ScriptVerb::kSchedule:
      return scheduler->Schedule(step.count);
    case ScriptVerb::kScheduleHost:
      return scheduler->ScheduleHost(HostName(step.host), step.count);
    case ScriptVerb::kShowHost:
      return scheduler->ShowHost(HostName(step.host));
    case ScriptVerb::kListHosts:
      return scheduler->ListHosts();
    case ScriptVerb::kClearHost:
      return scheduler->ClearHost(HostName(step.host));
    case ScriptVerb::kClearAll:
      return scheduler->ClearAll();
  }
}

void RunScript(std::string_view text, Tracer* tracer, sava::cli::OutFile* out) {
  Scheduler scheduler(tracer, out);
  ScriptReader reader(text);
  std::vector<char> room;
  for (ScriptStep step = reader.Next(); step.kind != ScriptStep::Kind::kEnd; step = reader.Next()) {
    if (step.kind == ScriptStep::Kind::kUrl) {
      room.resize(sava::types::UrlRoom(step.text.size()));
      const auto split =
          sava::types::NormalizeUrl(sava::types::UrlNorm::kUfmg, step.text, room.data());
      if (split.ok()) {
        scheduler.Add({split.depth, std::string(split.host), std::string(split.rest)});
      }
    } else if (step.kind == ScriptStep::Kind::kCommand) {
      tracer->phase = static_cast<uint64_t>(step.verb);
      Execute(step, &scheduler);
    }
  }
  tracer->log = nullptr;  // the document's log ends before what is left is freed
}

int Fail(std::string_view text) {
  fmt::print(stderr, "sava_frontier_lists: {}\n", text);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  bool logging = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-l") {
      logging = true;
    } else {
      path = argv[i];
    }
  }
  auto script = sava::base::MappedFile::Open(path);
  if (!script) return Fail(script.error());
  sava::cli::OutFile out;
  if (const auto status = out.Open(sava::cli::NameBeside(path, "-lists-out.txt")); !status) {
    return Fail(status.error());
  }
  AccessLog log;
  Tracer tracer;
  if (logging) {
    const auto status = log.Open(sava::cli::NameBeside(path, "-lists-access.log"));
    if (!status) return Fail(status.error());
    tracer.log = &log;
  }
  RunScript(script->bytes(), &tracer, &out);
  if (const auto status = out.Close(); !status) return Fail(status.error());
  if (logging) {
    if (const auto status = log.Close(); !status) return Fail(status.error());
  }
  return 0;
}
