// The document's abstract types: the 23 operations of queue and list, the two exceptions in their
// 16 places with what they say, URLs as the frontier's `ufmg` reads them, and the scheduler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "sava/documents/escalonador.h"
#include "sava/documents/fila_encadeada.h"
#include "sava/documents/lista_encadeada.h"
#include "sava/documents/url.h"
#include "types/frontier/url.h"

namespace sava::documents {
namespace {

using Fila = FilaEncadeada<std::string>;
using Lista = ListaEncadeada<int>;

// The elements, as print writes them.
template <typename Estrutura>
std::string Printed(const Estrutura& estrutura) {
  if (estrutura.empty()) return "";
  std::ostringstream saida;
  estrutura.print(saida);
  std::string text = saida.str();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void Fill(Lista* lista, int n) {
  for (int i = 1; i <= n; ++i) lista->push_back(i * 10);
}

std::string EmptyError(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const ExcecaoEmpty& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// ---- the queue's 8 operations ----

TEST(FilaEncadeada, FirstInFirstOut) {
  Fila fila;
  EXPECT_TRUE(fila.empty());
  EXPECT_EQ(fila.size(), 0U);
  for (const char* item : {"a", "b", "c"}) fila.push_back(item);
  EXPECT_FALSE(fila.empty());
  EXPECT_EQ(fila.size(), 3U);
  EXPECT_EQ(fila.pop_front(), "a");
  fila.push_back("d");
  EXPECT_EQ(fila.pop_front(), "b");
  EXPECT_EQ(fila.pop_front(), "c");
  EXPECT_EQ(fila.pop_front(), "d");
  EXPECT_TRUE(fila.empty());
  fila.push_back("e");
  EXPECT_EQ(Printed(fila), "e ");
}

TEST(FilaEncadeada, PrintAndClear) {
  Fila fila;
  for (const char* item : {"a", "b", "c"}) fila.push_back(item);
  EXPECT_EQ(Printed(fila), "a b c ");
  fila.clear();
  EXPECT_EQ(fila.size(), 0U);
  fila.push_back("d");
  EXPECT_EQ(Printed(fila), "d ");
}

TEST(FilaEncadeada, WhatAnEmptyQueueRefuses) {
  for (const bool used : {false, true}) {
    Fila fila;
    if (used) {
      fila.push_back("a");
      fila.pop_front();
    }
    EXPECT_EQ(EmptyError([&] { fila.pop_front(); }), "pop_front: estrutura vazia");
    EXPECT_EQ(EmptyError([&] { fila.print(); }), "print: estrutura vazia");
    EXPECT_EQ(EmptyError([&] { fila.clear(); }), "clear: estrutura vazia");
  }
}

TEST(FilaEncadeada, ItemsThatOwnMemoryAreFreed) {
  auto counted = std::make_shared<int>(1);
  {
    FilaEncadeada<std::shared_ptr<int>> fila;
    for (int i = 0; i < 5; ++i) fila.push_back(counted);
    EXPECT_EQ(counted.use_count(), 6);
    fila.pop_front();
    EXPECT_EQ(counted.use_count(), 5);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

// ---- the list's 15 operations ----

TEST(ListaEncadeada, PushesAndPops) {
  Lista lista;
  EXPECT_TRUE(lista.empty());
  lista.push_front(2);
  lista.push_front(1);
  lista.push_back(3);
  EXPECT_EQ(Printed(lista), "1 2 3 ");
  EXPECT_EQ(lista.size(), 3U);
  EXPECT_EQ(lista.pop_front(), 1);
  EXPECT_EQ(lista.pop_back(), 3);
  EXPECT_EQ(lista.pop_back(), 2);
  EXPECT_TRUE(lista.empty());
  lista.push_back(4);
  lista.push_front(3);
  EXPECT_EQ(Printed(lista), "3 4 ");
}

TEST(ListaEncadeada, PositionsCountFromOne) {
  Lista lista;
  Fill(&lista, 3);
  EXPECT_EQ(lista.get_item(1), 10);
  EXPECT_EQ(lista.get_item(3), 30);
  lista.set_item(2, 25);
  EXPECT_EQ(Printed(lista), "10 25 30 ");
  lista.insert_at(1, 5);
  lista.insert_at(5, 40);
  lista.insert_at(3, 15);
  EXPECT_EQ(Printed(lista), "5 10 15 25 30 40 ");
  EXPECT_EQ(lista.remove_at(6), 40);
  EXPECT_EQ(lista.remove_at(1), 5);
  EXPECT_EQ(lista.remove_at(2), 15);
  lista.push_back(50);
  EXPECT_EQ(Printed(lista), "10 25 30 50 ");
}

TEST(ListaEncadeada, FindGivesTheFirstPosition) {
  Lista lista;
  for (const int item : {7, 8, 8, 9}) lista.push_back(item);
  EXPECT_EQ(lista.find(7), 1);
  EXPECT_EQ(lista.find(8), 2);
  EXPECT_EQ(lista.find(9), 4);
  EXPECT_EQ(lista.find(1), 0);
}

TEST(ListaEncadeada, PrintAndClear) {
  Lista lista;
  Fill(&lista, 4);
  EXPECT_EQ(Printed(lista), "10 20 30 40 ");
  lista.clear();
  EXPECT_EQ(lista.size(), 0U);
  lista.push_back(1);
  EXPECT_EQ(Printed(lista), "1 ");
}

TEST(ListaEncadeada, WhatAnEmptyListRefuses) {
  Lista lista;
  const auto check = [&lista](const std::string& name, const std::function<void()>& operation) {
    EXPECT_EQ(EmptyError(operation), name + ": estrutura vazia");
    EXPECT_EQ(lista.size(), 0U);
  };
  check("get_item", [&] { lista.get_item(1); });
  check("set_item", [&] { lista.set_item(1, 1); });
  check("insert_at", [&] { lista.insert_at(1, 1); });
  check("pop_front", [&] { lista.pop_front(); });
  check("pop_back", [&] { lista.pop_back(); });
  check("remove_at", [&] { lista.remove_at(1); });
  check("find", [&] { lista.find(1); });
  check("print", [&] { lista.print(); });
  check("clear", [&] { lista.clear(); });
}

TEST(ListaEncadeada, APositionThatIsNotThereIsToldWithTheValidOnes) {
  Lista lista;
  Fill(&lista, 3);
  const auto check = [&lista](const std::string& name, int64_t position, int64_t last,
                              const std::function<void()>& operation) {
    try {
      operation();
      ADD_FAILURE() << name << " " << position;
    } catch (const ExcecaoInvalidPosition& error) {
      EXPECT_EQ(error.posicao, position);
      EXPECT_EQ(error.primeira, 1);
      EXPECT_EQ(error.ultima, last);
      EXPECT_EQ(error.what(), name + ": posicao invalida " + std::to_string(position) +
                                  ", validas de 1 a " + std::to_string(last));
    }
    EXPECT_EQ(Printed(lista), "10 20 30 ");
  };
  for (const int64_t position : {int64_t{-1}, int64_t{0}, int64_t{4}, int64_t{5}, INT64_MAX}) {
    check("get_item", position, 3, [&] { lista.get_item(position); });
    check("set_item", position, 3, [&] { lista.set_item(position, 1); });
    check("remove_at", position, 3, [&] { lista.remove_at(position); });
    if (position != 4) check("insert_at", position, 4, [&] { lista.insert_at(position, 1); });
  }
}

TEST(ListaEncadeada, AnySequenceIsAsThatOfADeque) {
  std::mt19937 rng(11);
  Lista lista;
  std::deque<int> model;
  for (int step = 0; step < 20000; ++step) {
    const int item = static_cast<int>(rng() % 50);
    const auto at = static_cast<int64_t>(rng() % (model.size() + 1)) + 1;
    const bool inside = at <= static_cast<int64_t>(model.size());
    switch (rng() % 9) {
      case 0:
        lista.push_front(item);
        model.push_front(item);
        break;
      case 1:
        lista.push_back(item);
        model.push_back(item);
        break;
      case 2:
        if (model.empty()) break;
        lista.insert_at(at, item);
        model.insert(model.begin() + at - 1, item);
        break;
      case 3:
        if (model.empty()) break;
        EXPECT_EQ(lista.pop_front(), model.front());
        model.pop_front();
        break;
      case 4:
        if (model.empty()) break;
        EXPECT_EQ(lista.pop_back(), model.back());
        model.pop_back();
        break;
      case 5:
        if (!inside) break;
        EXPECT_EQ(lista.remove_at(at), model[static_cast<size_t>(at) - 1]);
        model.erase(model.begin() + at - 1);
        break;
      case 6:
        if (!inside) break;
        lista.set_item(at, item);
        model[static_cast<size_t>(at) - 1] = item;
        break;
      case 7: {
        if (model.empty()) break;
        const auto found = std::find(model.begin(), model.end(), item);
        EXPECT_EQ(lista.find(item), found == model.end() ? 0 : found - model.begin() + 1);
        break;
      }
      default:
        if (model.empty() || rng() % 100 != 0) break;
        lista.clear();
        model.clear();
    }
    ASSERT_EQ(lista.size(), model.size());
    if (!model.empty()) {
      ASSERT_EQ(lista.get_item(1), model.front());
    }
  }
}

// ---- Url ----

TEST(Url, ItsParts) {
  const Url url("HTTP://www.Example.com:80/a/b.html?x=/1#top");
  EXPECT_EQ(url.GetProtocol(), "http");
  EXPECT_EQ(url.GetHost(), "example.com:80");
  EXPECT_EQ(url.GetPath(), "/a/b.html");
  EXPECT_EQ(url.GetDepth(), 2);
  EXPECT_TRUE(url.isValid());
  std::ostringstream printed;
  url.print(printed);
  EXPECT_EQ(printed.str(), "http://example.com:80/a/b.html?x=/1");
  const Url nothing;
  EXPECT_EQ(nothing.GetProtocol() + nothing.GetHost() + nothing.GetPath(), "");
  EXPECT_EQ(nothing.GetDepth(), 0);
  EXPECT_FALSE(nothing.isValid());
}

TEST(Url, EqualityIsThatOfWhatIsPrinted) {
  EXPECT_TRUE(Url("http://a.com/x/") == Url("http://WWW.a.com/x#y"));
  EXPECT_TRUE(Url("http://a.com/x") != Url("http://a.com/X"));
  EXPECT_TRUE(Url("http://a.com/x") != Url("http://a.com/x?"));
}

// The document's class and the frontier's normalisation read every URL alike.
void ExpectSame(const std::string& text) {
  std::string room(types::UrlRoom(text.size()), '\0');
  const types::SplitUrl split = types::NormalizeUrl(types::UrlNorm::kUfmg, text, room.data());
  const Url url(text);
  const bool kept = url.isValid() && url.GetHost().size() <= types::kMaxUrlHostSize;
  ASSERT_EQ(kept, split.ok()) << text;
  if (!kept) return;
  std::string expected;
  types::AppendUrl(split.host, split.rest, &expected);
  std::ostringstream printed;
  printed << url;
  EXPECT_EQ(printed.str(), expected) << text;
  EXPECT_EQ(url.GetHost(), split.host) << text;
  EXPECT_EQ(static_cast<uint32_t>(url.GetDepth()), split.depth) << text;
}

TEST(Url, ReadsAsTheFrontierDoes) {
  std::mt19937_64 rng(3);
  const std::string pieces[] = {"http", "://",  "http://", "www.", "a",   "B.c",
                                "/",    "//",   "?",       "#",    "@",   ":",
                                " ",    "\x7f", ".pdf",    ".JPG", "%41", "\xc3\xa9"};
  for (int i = 0; i < 50000; ++i) {
    std::string text = rng() % 4 == 0 ? "" : "http://";
    for (uint64_t n = rng() % 9; n > 0; --n) text += pieces[rng() % std::size(pieces)];
    ExpectSame(text);
  }
  int replayed = 0;
  const std::filesystem::path corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/url";
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    ExpectSame({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    ++replayed;
  }
  EXPECT_GT(replayed, 5);
}

// ---- the scheduler ----

class EscalonadorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "escalonador-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Out() const { return (folder_ / "out.txt").string(); }

  // What was written since the last time.
  std::string Take() {
    escalonador_.setOutput(Out());
    std::ifstream file(Out(), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::filesystem::remove(Out());
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }

  void Add(std::initializer_list<const char*> urls) {
    escalonador_.setOutput(Out());
    for (const char* url : urls) escalonador_.AddUrl(Url(std::string("http://") + url));
  }

  std::filesystem::path folder_;
  Escalonador escalonador_;
};

TEST_F(EscalonadorTest, ByHostThenByDepthThenByArrival) {
  Add({"a/x/y", "b/1", "a/x", "a/z", "b/0", "a/x", "a/q/r"});
  escalonador_.ListaHosts();
  EXPECT_EQ(Take(), "a b ");
  escalonador_.VerHost("a");
  EXPECT_EQ(Take(), "http://a/x http://a/z http://a/x/y http://a/q/r ");
  escalonador_.Escalona(3);
  EXPECT_EQ(Take(), "http://a/x http://a/z http://a/x/y ");
  escalonador_.EscalonaHost("b", 1);
  EXPECT_EQ(Take(), "http://b/1 ");
  escalonador_.EscalonaTudo();
  EXPECT_EQ(Take(), "http://a/q/r http://b/0 ");
  escalonador_.ListaHosts();
  EXPECT_EQ(Take(), "a b ");
}

TEST_F(EscalonadorTest, BreadthGoesOnBehindTheLastHost) {
  Add({"a/1", "a/2", "a/3", "b/1", "c/1", "c/2"});
  escalonador_.EscalonaBreadth(2);
  EXPECT_EQ(Take(), "http://a/1 http://b/1 ");
  escalonador_.ListaHosts();
  EXPECT_EQ(Take(), "a b c ");
  Add({"d/1"});
  escalonador_.EscalonaBreadth(3);
  EXPECT_EQ(Take(), "http://c/1 http://d/1 http://a/2 ");
  escalonador_.EscalonaTudoBreadth();
  EXPECT_EQ(Take(), "http://c/2 http://a/3 ");
  Add({"b/2", "a/9"});
  escalonador_.EscalonaTudoBreadth();
  EXPECT_EQ(Take(), "http://a/9 http://b/2 ");
}

TEST_F(EscalonadorTest, ClearedHostsStayKnownUntilAllIsCleared) {
  Add({"a/1", "b/1"});
  escalonador_.LimpaHost("a");
  escalonador_.LimpaHost("a");
  escalonador_.LimpaHost("unknown");
  escalonador_.EscalonaHost("unknown", 5);
  escalonador_.VerHost("unknown");
  escalonador_.ListaHosts();
  escalonador_.EscalonaTudo();
  EXPECT_EQ(Take(), "a b http://b/1 ");
  EXPECT_NE(escalonador_.PesquisaHost("a"), nullptr);
  EXPECT_EQ(escalonador_.PesquisaHost("unknown"), nullptr);
  escalonador_.LimpaTudo();
  EXPECT_EQ(escalonador_.PesquisaHost("a"), nullptr);
  Add({"b/1"});
  escalonador_.ListaHosts();
  EXPECT_EQ(Take(), "b ");
}

TEST_F(EscalonadorTest, TheOutputIsSaidaOutUnlessAnotherIsSet) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  {
    Escalonador escalonador;
    escalonador.AddUrl(Url("http://a/1"));
    escalonador.ListaHosts();
  }
  EXPECT_EQ(std::filesystem::file_size("saida-out.txt"), 2U);
  std::filesystem::current_path(before);
  Escalonador escalonador;
  escalonador.setOutput((folder_ / "missing" / "out.txt").string());
  escalonador.AddUrl(Url("http://a/1"));
  EXPECT_THROW(escalonador.ListaHosts(), std::runtime_error);
}

static_assert(!std::is_copy_constructible_v<Fila> && !std::is_copy_assignable_v<Lista>);
static_assert(!std::is_copy_constructible_v<Escalonador>);

}  // namespace
}  // namespace sava::documents
