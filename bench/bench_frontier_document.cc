// Chapters 3 and 5.1 of document S1, in process: what the document's structures
// (include/sava/documents) and ours cost, without the start of a process.
// bench/frontier_document.py makes tables and figure 3 of it.
//
//   sava_bench_frontier_document [--small]     lines `part,name,scenario,side,n,seconds`
//
// Parts: `command` (each operation of the scheduler by itself, on n URLs in the three scenarios of
// 3.1.4), `type` (the operations of queue, list and URL), `figure3` (the files of 5.1) and `mixed`
// (other sets of commands). Each time is the best of several: others use the machine too.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "base/rng.h"
#include "cli/frontier_files.h"
#include "cli/frontier_generate.h"
#include "cli/frontier_run.h"
#include "frontier_lists.h"
#include "sava/documents/escalonador.h"
#include "types/frontier/frontier.h"
#include "types/frontier/url.h"

namespace {

using sava::documents::Escalonador;
using sava::types::Frontier;

constexpr const char* kNowhere = "/dev/null";
constexpr uint64_t kAll = UINT64_MAX;

double Seconds(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void Tell(std::string_view part, std::string_view name, int scenario, std::string_view side,
          uint64_t n, double seconds) {
  fmt::print("{},{},{},{},{},{:.9g}\n", part, name, scenario, side, n, seconds);
  std::fflush(stdout);
}

// The result of a call is used, so that the compiler leaves the call where it is.
template <typename T>
void Use(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// ---- the two schedulers ----

struct Parsed {
  explicit Parsed(const std::string& text) : url(text), room(sava::types::UrlRoom(text.size())) {
    kept = text;
    split = sava::types::NormalizeUrl(sava::types::UrlNorm::kUfmg, kept, room.data());
  }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;

  sava::documents::Url url;
  std::string kept;
  std::vector<char> room;
  sava::types::SplitUrl split;
};

class Lists {
 public:
  static constexpr std::string_view kSide = "lists";

  Lists() { scheduler_.setOutput(kNowhere); }
  void SetOutput() { scheduler_.setOutput(kNowhere); }
  void Add(const Parsed& parsed) { scheduler_.AddUrl(parsed.url); }
  void Schedule(uint64_t count) { scheduler_.Escalona(count); }
  void ScheduleBreadth(uint64_t count) { scheduler_.EscalonaBreadth(count); }
  void ScheduleHost(const std::string& host, uint64_t n) { scheduler_.EscalonaHost(host, n); }
  void ShowHost(const std::string& host) { scheduler_.VerHost(host); }
  void ListHosts() { scheduler_.ListaHosts(); }
  void ClearHost(const std::string& host) { scheduler_.LimpaHost(host); }
  void ClearAll() { scheduler_.LimpaTudo(); }
  void Find(const std::string& host) { Use(scheduler_.PesquisaHost(host)); }

 private:
  Escalonador scheduler_;
};

class Ours {
 public:
  static constexpr std::string_view kSide = "ours";

  Ours() : frontier_(Frontier::Options()) { SetOutput(); }
  void SetOutput() {
    Use(out_.Close());
    Use(out_.Open(kNowhere));
  }
  void Add(const Parsed& parsed) {
    Use(frontier_.AddOne({parsed.split.host, parsed.split.rest, parsed.split.depth}, {}, 0));
  }
  void Schedule(uint64_t count) { Next(count, Frontier::Strategy::kDepth, {}); }
  void ScheduleBreadth(uint64_t count) { Next(count, Frontier::Strategy::kBreadth, {}); }
  void ScheduleHost(const std::string& host, uint64_t count) {
    Next(count, Frontier::Strategy::kDepth, host);
  }
  void ShowHost(const std::string& host) { Use(frontier_.Peek(host, 0, kAll, Printer())); }
  void ListHosts() {
    frontier_.Hosts(0, kAll, [this](const Frontier::HostInfo& host) {
      out_.buffer()->append(host.name);
      out_.Append("\n");
    });
  }
  void ClearHost(const std::string& host) { Use(frontier_.Purge(host, 0)); }
  void ClearAll() { frontier_.Clear(); }
  void Find(const std::string& host) { Use(frontier_.FindHost(host)); }

 private:
  void Next(uint64_t count, Frontier::Strategy strategy, std::optional<std::string_view> host) {
    Frontier::NextRequest request;
    request.count = std::min<uint64_t>(count, frontier_.size());
    request.strategy = strategy;
    request.host = host;
    if (request.count > 0) frontier_.Next(request, 0, Printer());
  }
  Frontier::Serve Printer() {
    return [this](const Frontier::Served& served) {
      sava::types::AppendUrl(served.url.host, served.url.rest, out_.buffer());
      out_.Append("\n");
    };
  }

  Frontier frontier_;
  sava::cli::OutFile out_;
};

// ---- each operation by itself ----

// `hosts` hosts with `each` URLs. The deepest come first: so every URL is put near the beginning of
// its list, and building takes the lists no longer than it must.
struct Load {
  static constexpr uint64_t kLevels = 64;

  Load(uint64_t host_count, uint64_t urls_each) : hosts(host_count), each(urls_each) {
    for (uint64_t i = 0; i < each; ++i) {
      const uint64_t depth = 2 + (each - 1 - i) * std::min(each, kLevels) / each;
      for (uint64_t h = 0; h < hosts; ++h) urls.push_back(Make(h, depth, i));
    }
    last_host = fmt::format("h{}.com", hosts - 1);
  }

  static std::unique_ptr<Parsed> Make(uint64_t host, uint64_t depth, uint64_t number) {
    std::string text = fmt::format("http://h{}.com", host);
    for (uint64_t d = 1; d < depth; ++d) text += "/d";
    return std::make_unique<Parsed>(text + fmt::format("/u{}", number));
  }

  uint64_t hosts;
  uint64_t each;
  std::vector<std::unique_ptr<Parsed>> urls;
  std::string last_host;
};

template <typename Scheduler>
class Operations {
 public:
  Operations(int scenario, const Load& load, int builds)
      : scenario_(scenario), load_(load), builds_(builds) {}

  void Run() {
    Lasting("VerHost", [this](Scheduler* s) { s->ShowHost(load_.last_host); });
    Lasting("ListaHosts", [](Scheduler* s) { s->ListHosts(); });
    Lasting("PesquisaHost", [this](Scheduler* s) { s->Find(load_.last_host); });
    Lasting("setOutput", [](Scheduler* s) { s->SetOutput(); });
    AddUrls();
    Ending("EscalonaTudo", [](Scheduler* s) { s->Schedule(kAll); });
    Ending("EscalonaTudoBreadth", [](Scheduler* s) { s->ScheduleBreadth(kAll); });
    const uint64_t q = load_.urls.size();
    Ending("Escalona", [q](Scheduler* s) { s->Schedule(q); });
    Ending("EscalonaBreadth", [q](Scheduler* s) { s->ScheduleBreadth(q); });
    Ending("EscalonaHost", [this](Scheduler* s) { s->ScheduleHost(load_.last_host, kAll); });
    Ending("LimpaHost", [this](Scheduler* s) { s->ClearHost(load_.last_host); });
    Ending("LimpaTudo", [](Scheduler* s) { s->ClearAll(); });
    MakeAndFree();
  }

 private:
  std::unique_ptr<Scheduler> Build() const {
    auto scheduler = std::make_unique<Scheduler>();
    for (const auto& url : load_.urls) scheduler->Add(*url);
    return scheduler;
  }

  void Say(std::string_view name, double seconds) const {
    Tell("command", name, scenario_, Scheduler::kSide, load_.urls.size(), seconds);
  }

  // What leaves the scheduler as it is.
  void Lasting(std::string_view name, const std::function<void(Scheduler*)>& work) {
    if (built_ == nullptr) built_ = Build();
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      best = std::min(best, Seconds([&] { work(built_.get()); }));
    }
    const int times = best < 1e-4 ? 1000 : 1;
    for (int i = 0; i < 5 && times > 1; ++i) {
      best = std::min(best, Seconds([&] {
                              for (int n = 0; n < times; ++n) work(built_.get());
                            }) / times);
    }
    Say(name, best);
  }

  // What needs a new one each time.
  void Ending(std::string_view name, const std::function<void(Scheduler*)>& work) const {
    double best = 1e9;
    for (int i = 0; i < builds_; ++i) {
      const auto scheduler = Build();
      scheduler->Find(load_.last_host);
      best = std::min(best, Seconds([&] { work(scheduler.get()); }));
    }
    Say(name, best);
  }

  // A URL for the first and one for the last place of the last host's list.
  void AddUrls() {
    constexpr uint64_t kTimes = 15;
    double first = 1e9;
    double last = 1e9;
    for (uint64_t i = 0; i < kTimes; ++i) {
      const auto front = Load::Make(load_.hosts - 1, 1, i);
      first = std::min(first, Seconds([&] { built_->Add(*front); }));
      built_->ScheduleHost(load_.last_host, 1);
      const auto back = Load::Make(load_.hosts - 1, 2 + Load::kLevels + i, i);
      last = std::min(last, Seconds([&] { built_->Add(*back); }));
    }
    Say("AddUrl first", first);
    Say("AddUrl last", last);
    built_.reset();
  }

  void MakeAndFree() const {
    double made = 1e9;
    double freed = 1e9;
    for (int i = 0; i < builds_; ++i) {
      auto scheduler = Build();
      freed = std::min(freed, Seconds([&] { scheduler.reset(); }));
    }
    constexpr int kTimes = 100;
    for (int i = 0; i < kTimes; ++i) {
      std::unique_ptr<Scheduler> scheduler;
      made = std::min(made, Seconds([&] { scheduler = std::make_unique<Scheduler>(); }));
    }
    Say("Construtor", made);
    Say("Destrutor", freed);
  }

  int scenario_;
  const Load& load_;
  int builds_;
  std::unique_ptr<Scheduler> built_;
};

std::pair<uint64_t, uint64_t> Shape(int scenario, uint64_t n) {
  if (scenario == 1) return {1, n};
  if (scenario == 2) return {n, 1};
  const auto side = static_cast<uint64_t>(std::lround(std::sqrt(static_cast<double>(n))));
  return {side, side};
}

void MeasureCommands(bool small) {
  const std::vector<uint64_t> both =
      small ? std::vector<uint64_t>{64, 256} : std::vector<uint64_t>{256, 1024, 4096};
  const std::vector<uint64_t> large =
      small ? std::vector<uint64_t>{} : std::vector<uint64_t>{16384, 65536, 262144};
  for (int scenario = 1; scenario <= 3; ++scenario) {
    for (const uint64_t n : both) {
      const auto [hosts, each] = Shape(scenario, n);
      const Load load(hosts, each);
      Operations<Lists>(scenario, load, small ? 1 : 3).Run();
      Operations<Ours>(scenario, load, small ? 1 : 5).Run();
    }
    for (const uint64_t n : large) {
      const auto [hosts, each] = Shape(scenario, n);
      Operations<Ours>(scenario, Load(hosts, each), 3).Run();
    }
  }
}

// ---- queue, list and URL ----

// The best time of `work` on what `make` made; `undo` puts it back in order, untimed.
template <typename T>
double Best(T* on, const std::function<void(T*)>& work, const std::function<void(T*)>& undo) {
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    best = std::min(best, Seconds([&] { work(on); }));
    undo(on);
  }
  return best;
}

template <typename T>
void Fill(T* to, uint64_t n) {
  for (uint64_t i = to->size(); i < n; ++i) to->push_back(static_cast<int64_t>(i + 1));
}

void MeasureType(std::string_view name, uint64_t n, double seconds) {
  Tell("type", name, 0, "lists", n, seconds);
}

// What queue and list share.
template <typename T>
void MeasureBoth(const std::string& type, uint64_t n) {
  std::ofstream nowhere(kNowhere);
  T on;
  Fill(&on, n);
  const auto nothing = [](T*) {};
  const auto say = [&](const char* name, const std::function<void(T*)>& work,
                       const std::function<void(T*)>& undo) {
    MeasureType(type + " " + name, n, Best<T>(&on, work, undo));
  };
  std::unique_ptr<T> made;
  say(
      "Construtor", [&](T*) { made = std::make_unique<T>(); }, [&](T*) { made.reset(); });
  made = std::make_unique<T>();
  Fill(made.get(), n);
  say(
      "Destrutor", [&](T*) { made.reset(); },
      [&](T*) {
        made = std::make_unique<T>();
        Fill(made.get(), n);
      });
  say(
      "size", [](T* t) { Use(t->size()); }, nothing);
  say(
      "empty", [](T* t) { Use(t->empty()); }, nothing);
  say(
      "push_back", [](T* t) { t->push_back(1); }, [](T* t) { t->pop_front(); });
  say(
      "pop_front", [](T* t) { Use(t->pop_front()); }, [](T* t) { t->push_back(1); });
  say(
      "print", [&](T* t) { t->print(nowhere); }, nothing);
  say(
      "clear", [](T* t) { t->clear(); }, [n](T* t) { Fill(t, n); });
}

void MeasureList(uint64_t n) {
  using List = sava::documents::ListaEncadeada<int64_t>;
  MeasureBoth<List>("Lista", n);
  List on;
  Fill(&on, n);
  const auto last = static_cast<int64_t>(n);
  const auto nothing = [](List*) {};
  const auto say = [&](const char* name, const std::function<void(List*)>& work,
                       const std::function<void(List*)>& undo) {
    MeasureType(std::string("Lista ") + name, n, Best<List>(&on, work, undo));
  };
  say(
      "get_item first", [](List* l) { Use(l->get_item(1)); }, nothing);
  say(
      "get_item last", [=](List* l) { Use(l->get_item(last)); }, nothing);
  say(
      "set_item first", [](List* l) { l->set_item(1, 1); }, nothing);
  say(
      "set_item last", [=](List* l) { l->set_item(last, last); }, nothing);
  say(
      "push_front", [](List* l) { l->push_front(0); }, [](List* l) { l->pop_front(); });
  say(
      "insert_at first", [](List* l) { l->insert_at(1, 0); }, [](List* l) { l->pop_front(); });
  say(
      "insert_at last", [=](List* l) { l->insert_at(last + 1, 0); },
      [](List* l) { l->pop_back(); });
  say(
      "pop_back", [](List* l) { Use(l->pop_back()); }, [=](List* l) { l->push_back(last); });
  say(
      "remove_at first", [](List* l) { Use(l->remove_at(1)); }, [](List* l) { l->push_front(1); });
  say(
      "remove_at last", [=](List* l) { Use(l->remove_at(last)); },
      [=](List* l) { l->push_back(last); });
  say(
      "find first", [](List* l) { Use(l->find(1)); }, nothing);
  say(
      "find none", [](List* l) { Use(l->find(-1)); }, nothing);
}

void MeasureUrl(uint64_t n) {
  using sava::documents::Url;
  std::ofstream nowhere(kNowhere);
  const std::string text = "http://example.com/" + std::string(n, 'x') + ".html?q=1";
  Url on(text);
  const Url same(text);
  const auto say = [&](const char* name, const std::function<void(Url*)>& work) {
    MeasureType(std::string("Url ") + name, n, Best<Url>(&on, work, [](Url*) {}));
  };
  say("Construtor padrao", [](Url*) { Use(Url()); });
  say("Construtor", [&](Url*) { Use(Url(text)); });
  say("isValid", [](Url* u) { Use(u->isValid()); });
  say("print", [&](Url* u) { u->print(nowhere); });
  say("operator<<", [&](Url* u) { nowhere << *u; });
  say("operator==", [&](Url* u) { Use(*u == same); });
  say("GetProtocol", [](Url* u) { Use(u->GetProtocol()); });
  say("GetHost", [](Url* u) { Use(u->GetHost()); });
  say("GetPath", [](Url* u) { Use(u->GetPath()); });
  say("GetDepth", [](Url* u) { Use(u->GetDepth()); });
}

void MeasureTypes(bool small) {
  for (const uint64_t n :
       small ? std::vector<uint64_t>{100, 400} : std::vector<uint64_t>{1000, 4000, 16000}) {
    MeasureBoth<sava::documents::FilaEncadeada<int64_t>>("Fila", n);
    MeasureList(n);
    MeasureUrl(n);
  }
}

// ---- whole files ----

class Files {
 public:
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "sava-document-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

void RunLists(const std::string& path, bool breadth) {
  auto script = sava::base::MappedFile::Open(path);
  if (!script) throw std::runtime_error(script.error());
  Escalonador scheduler;
  scheduler.setOutput(kNowhere);
  sava::bench::ListsProgram(&scheduler, breadth).Run(script->bytes(), [](sava::cli::ScriptVerb) {});
}

void RunOurs(const std::string& path, bool breadth) {
  sava::cli::FrontierRunOptions options;
  options.path = path;
  options.output = kNowhere;
  if (breadth) options.strategy = Frontier::Strategy::kBreadth;
  const auto status = sava::cli::RunFrontierScript(options);
  if (!status) throw std::runtime_error(status.error());
}

void MeasureFile(std::string_view part, const std::string& name, const std::string& path,
                 uint64_t n, int times) {
  for (const bool breadth : {false, true}) {
    const std::string whole = breadth ? name + " -b" : name;
    double lists = 1e9;
    double ours = 1e9;
    for (int i = 0; i < times; ++i) {
      lists = std::min(lists, Seconds([&] { RunLists(path, breadth); }));
      ours = std::min(ours, Seconds([&] { RunOurs(path, breadth); }));
    }
    Tell(part, whole, 3, "lists", n, lists);
    Tell(part, whole, 3, "ours", n, ours);
  }
}

void MeasureFigure3(const Files& files, int times) {
  for (const uint64_t mean : {10, 20, 30, 40, 50}) {
    sava::cli::GenerateOptions options;
    options.urls_mean = static_cast<double>(mean);
    options.urls = 10 * mean + 14;
    options.path = files.Path(fmt::format("urls-{}.txt", options.urls));
    if (const auto status = sava::cli::GenerateScript(options); !status) {
      throw std::runtime_error(status.error());
    }
    MeasureFile("figure3", "figure 3", options.path, options.urls, times);
  }
}

// `n` URLs of ten hosts, 50 at a time, and after each 50 these commands.
void MeasureMixed(const Files& files, const std::string& name, uint64_t n,
                  const std::function<std::string(const std::string& host)>& commands, int times) {
  constexpr uint64_t kRound = 50;
  sava::base::Rng rng(5);
  std::string script;
  for (uint64_t i = 0; i < n; ++i) {
    if (i % kRound == 0) script += fmt::format("ADD_URLS {}\n", std::min(kRound, n - i));
    script += fmt::format("http://h{}.com", rng.Below(10));
    for (uint64_t depth = rng.Below(9); depth > 0; --depth) script += "/d";
    script += fmt::format("/u{}\n", i);
    if (i % kRound == kRound - 1) script += commands(fmt::format("h{}.com", rng.Below(10)));
  }
  const std::string path = files.Path(name + ".txt");
  std::ofstream(path) << script << "ESCALONA_TUDO\nLIMPA_TUDO\n";
  MeasureFile("mixed", name, path, n, times);
}

void MeasureFiles(bool small) {
  const Files files;
  MeasureFigure3(files, small ? 2 : 51);
  for (const uint64_t n : small ? std::vector<uint64_t>{200} : std::vector<uint64_t>{500, 5000}) {
    const int times = small || n > 1000 ? 2 : 21;
    MeasureMixed(
        files, "schedule", n,
        [](const std::string& host) {
          return fmt::format("ESCALONA 15\nESCALONA_HOST {} 15\n", host);
        },
        times);
    MeasureMixed(
        files, "look", n,
        [](const std::string& host) { return fmt::format("VER_HOST {}\nLISTA_HOSTS\n", host); },
        times);
    MeasureMixed(
        files, "all", n,
        [](const std::string& host) {
          return fmt::format(
              "ESCALONA 10\nESCALONA_HOST {0} 5\nVER_HOST {0}\nLISTA_HOSTS\n"
              "LIMPA_HOST {0}\n",
              host);
        },
        times);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc > 1 && std::string_view(argv[1]) == "--small";
  try {
    fmt::print("part,name,scenario,side,n,seconds\n");
    MeasureFiles(small);
    MeasureTypes(small);
    MeasureCommands(small);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sava_bench_frontier_document: {}\n", error.what());
    return 2;
  }
  return 0;
}
