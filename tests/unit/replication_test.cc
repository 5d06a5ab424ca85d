// Parts of replication that need no server: the backlog, the stream of changes, copies on their
// way, the words on the wire.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "../../fuzz/replication_property.h"
#include "journal/journal.h"
#include "journal_text.h"
#include "replication/backlog.h"
#include "replication/change_stream.h"
#include "replication/ids.h"
#include "replication/transfer.h"
#include "replication/wire.h"

namespace sava::replication {
namespace {

using commands::Reader;

std::string ReadAll(Backlog& backlog, BacklogPlace place) {
  std::string all;
  while (true) {
    const std::string_view bytes = backlog.Read(&place, backlog.end());
    if (bytes.empty()) return all;
    all += bytes;
    place.at += static_cast<int64_t>(bytes.size());
  }
}

std::string Numbered(size_t from, size_t to) {
  std::string text;
  for (size_t i = from; i < to; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

// ---- backlog ----

TEST(Backlog, KeepsWhatIsWantedAndLetsTheRestGo) {
  Backlog backlog(1000, 64 << 10);
  std::string written;
  for (int i = 0; i < 500; ++i) {
    const std::string part = Numbered(100 * i, 100 * i + 100);
    backlog.Append(part);
    written += part;
    backlog.Publish(backlog.written());
  }
  EXPECT_EQ(backlog.end(), 1000 + static_cast<int64_t>(written.size()));
  EXPECT_GE(backlog.end() - backlog.first(), 64 << 10);
  EXPECT_LE(backlog.end() - backlog.first(), (64 << 10) + 2 * Backlog::kSmallestBlock);
  for (const int64_t back : {int64_t{0}, int64_t{1}, int64_t{17000}, int64_t{65536}}) {
    const auto place = backlog.Open(backlog.end() - back);
    ASSERT_TRUE(place) << back;
    EXPECT_EQ(ReadAll(backlog, *place), written.substr(written.size() - back));
  }
  EXPECT_FALSE(backlog.Open(backlog.first() - 1));
  EXPECT_TRUE(backlog.Open(backlog.first()));
  EXPECT_FALSE(backlog.Open(backlog.end() + 1));
}

TEST(Backlog, ASlowReaderKeepsAllBehindIt) {
  Backlog backlog(0, 16 << 10);
  BacklogPlace slow = backlog.AtWritten();
  const std::string written = Numbered(0, 100000);
  backlog.Append(written);
  backlog.Publish(backlog.written());
  EXPECT_GE(backlog.memory(), static_cast<int64_t>(written.size()));
  EXPECT_EQ(ReadAll(backlog, slow), written);
  slow = {};
  for (int i = 0; i < 100; ++i) backlog.Trim();
  EXPECT_LE(backlog.memory(), int64_t{64} << 10);
  EXPECT_LE(backlog.end() - backlog.first(), int64_t{48} << 10);
}

TEST(Backlog, NobodyReadsWhatIsNotPublished) {
  Backlog backlog(0, 16 << 10);
  backlog.Append("one");
  BacklogPlace place = *backlog.Open(0);
  EXPECT_EQ(backlog.Read(&place, backlog.end()), "");
  backlog.Publish(2);
  EXPECT_EQ(backlog.Read(&place, backlog.end()), "on");
}

TEST(Backlog, ReadersOnOtherThreadsSeeWhatWasWritten) {
  Backlog backlog(0, 16 << 10);
  const std::string written = Numbered(0, 200000);
  std::vector<std::string> seen(3);
  std::vector<std::thread> readers;
  std::vector<BacklogPlace> places(seen.size(), backlog.AtWritten());
  for (size_t i = 0; i < seen.size(); ++i) {
    readers.emplace_back([&, i, place = std::exchange(places[i], {})]() mutable {
      while (seen[i].size() < written.size()) {
        const std::string_view bytes = backlog.Read(&place, backlog.end());
        seen[i] += bytes;
        place.at += static_cast<int64_t>(bytes.size());
      }
    });
  }
  for (size_t at = 0; at < written.size(); at += 1000) {
    backlog.Append(std::string_view(written).substr(at, 1000));
    backlog.Publish(backlog.written());
  }
  for (std::thread& reader : readers) reader.join();
  for (const std::string& one : seen) EXPECT_EQ(one, written);
}

TEST(Backlog, ForeignPartsAreFoundInOrder) {
  Backlog backlog(0, 16 << 10);
  backlog.MarkForeign(10, 20, Reader::kStockWithModule);
  backlog.MarkForeign(30, 45, Reader::kSava);
  EXPECT_EQ(backlog.ForeignFrom(0, Reader::kStock)->begin, 10);
  EXPECT_EQ(backlog.ForeignFrom(19, Reader::kStock)->begin, 10);
  EXPECT_EQ(backlog.ForeignFrom(20, Reader::kStock)->begin, 30);
  EXPECT_FALSE(backlog.ForeignFrom(45, Reader::kStock));
  EXPECT_EQ(backlog.ForeignFrom(0, Reader::kStockWithModule)->begin, 30);
  EXPECT_FALSE(backlog.ForeignFrom(0, Reader::kSava));
}

// ---- ids ----

TEST(History, ASiblingMayGoOnUpToWhereItsHistoryEnded) {
  History history;
  history.offset = 500;
  const std::string before = history.id;
  history.Promote();
  EXPECT_NE(history.id, before);
  EXPECT_TRUE(history.Covers(history.id, 900));
  EXPECT_TRUE(history.Covers(before, 501));
  EXPECT_FALSE(history.Covers(before, 502));
  EXPECT_FALSE(history.Covers(NewId(), 1));
  history.ForgetSecond();
  EXPECT_FALSE(history.Covers(before, 1));
  EXPECT_FALSE(history.Covers(std::string(40, '0'), -1));
  EXPECT_TRUE(IsId(NewId()));
  EXPECT_FALSE(IsId("?"));
}

// ---- wire ----

TEST(Wire, PaddingHasEveryLengthAndIsACommandOfRedis) {
  for (size_t length = kPing.size(); length < 1200; ++length) {
    const Padding padding = PaddingOf(length);
    std::string text = padding.head + std::string(padding.fill, 'x');
    if (padding.line_end) text += "\r\n";
    ASSERT_EQ(text.size(), length);
    std::string_view rest = text;
    while (rest.starts_with("\n")) rest.remove_prefix(1);
    if (rest.starts_with("*0\r\n")) rest.remove_prefix(4);
    std::vector<std::string_view> words;
    ASSERT_EQ(SplitCommand(rest, 9, &words), rest.size()) << length;
    ASSERT_EQ(words.front(), "PING");
    ASSERT_LE(words.size(), 2U);
    EXPECT_EQ(ReaderOf(rest), Reader::kStock);
  }
  EXPECT_EQ(PaddingOf(100000003).size(), 100000003U);
}

TEST(Wire, WhatAStockServerDoesNotKnowIsForeign) {
  using journal::RespText;
  EXPECT_EQ(ReaderOf(RespText({"SET", "a", "1"})), Reader::kStock);
  EXPECT_EQ(ReaderOf(RespText({"set", "a", "1"})), Reader::kStock);
  EXPECT_EQ(ReaderOf(RespText({"AFC.ADD", "a", "1"})), Reader::kStockWithModule);
  EXPECT_EQ(ReaderOf(RespText({"Increx", "a"})), Reader::kStockWithModule);
  EXPECT_EQ(ReaderOf(RespText({"hpexpireat", "a", "1", "FIELDS", "1", "f"})), Reader::kSava);
  EXPECT_EQ(ReaderOf(RespText({"RESTORE", "a", "0", std::string("\x00x", 2)})), Reader::kStock);
  EXPECT_EQ(ReaderOf(RespText({"restore", "a", "0", "\x07x"})), Reader::kStockWithModule);
  EXPECT_EQ(ReaderOf(RespText({"SET", "a", "1"})), Reader::kStock);
  EXPECT_EQ(ReaderOf(kPing), Reader::kStock);
  EXPECT_EQ(ReaderOf(kGetAck), Reader::kStock);
}

TEST(Wire, CommandsAreSplitOnlyWhenWhole) {
  const std::string command = journal::RespText({"SET", "key", "value"});
  std::vector<std::string_view> words;
  for (size_t size = 0; size < command.size(); ++size) {
    EXPECT_FALSE(SplitCommand(std::string_view(command).substr(0, size), 9, &words)) << size;
  }
  const std::string more = command + "*1";
  EXPECT_EQ(SplitCommand(more, 2, &words), command.size());
  EXPECT_EQ(words, (std::vector<std::string_view>{"SET", "key"}));
}

// ---- the stream ----

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    stream.Begin(1 << 20);
    journal.Attach(stream);
  }
  ~StreamTest() override { journal.Detach(stream); }

  void Log(std::vector<std::vector<std::string>> effects, uint32_t db = 0) {
    for (const auto& words : effects) {
      const std::vector<std::string_view> views(words.begin(), words.end());
      journal.Add(0, views, db);
    }
    after = journal.Append(0, after);
  }
  std::string Text() {
    journal.Flush();
    journal.MergeHere();
    const auto mark = stream.Resume(stream.history().id, 0);
    return mark ? ReadAll(*mark->backlog, mark->place) : "?";
  }

  std::atomic<uint64_t> kept = UINT64_MAX;  // both are asked for on the journal's thread, too
  std::atomic<int> moved = 0;
  journal::Journal journal{1};
  ChangeStream stream{{.kept = [this] { return kept.load(); },
                       .moved = [this] { ++moved; },
                       .drop = [](std::string_view) {}}};
  uint64_t after = 0;
};

std::string Commands(const std::vector<std::vector<std::string>>& commands) {
  std::string text;
  for (const auto& words : commands) text += journal::RespText(words);
  return text;
}

TEST_F(StreamTest, FramesRecordsAndCountsTheirBytes) {
  Log({{"SET", "a", "1"}});
  Log({{"SET", "b", "1"}, {"DEL", "c"}});
  Log({{"SET", "d", "1"}}, 3);
  const std::string wanted = Commands({{"SELECT", "0"},
                                       {"SET", "a", "1"},
                                       {"MULTI"},
                                       {"SET", "b", "1"},
                                       {"DEL", "c"},
                                       {"EXEC"},
                                       {"SELECT", "3"},
                                       {"SET", "d", "1"}});
  EXPECT_EQ(Text(), wanted);
  EXPECT_EQ(stream.offset(), static_cast<int64_t>(wanted.size()));
  EXPECT_EQ(stream.history().offset, stream.offset());
}

TEST_F(StreamTest, APlaceInItBeginsWithSelect) {
  Log({{"SET", "a", "1"}});
  int64_t at = -1;
  stream.MarkAt(journal.Cut(), true, [&](const ChangeStream::Mark& mark) { at = mark.place.at; });
  Log({{"SET", "b", "1"}});
  int db = -1;
  stream.MarkAt(journal.Cut(), false, [&](const ChangeStream::Mark& mark) { db = mark.db; });
  Log({{"SET", "c", "1"}}, 5);
  stream.MarkAt(journal.Cut(), false, [&](const ChangeStream::Mark& mark) { db += mark.db; });
  Log({{"SET", "d", "1"}}, 5);
  const std::string all = Text();
  const std::string before = Commands({{"SELECT", "0"}, {"SET", "a", "1"}});
  EXPECT_EQ(at, static_cast<int64_t>(before.size()));
  EXPECT_EQ(all, before + Commands({{"SELECT", "0"},
                                    {"SET", "b", "1"},
                                    {"SELECT", "5"},
                                    {"SET", "c", "1"},
                                    {"SET", "d", "1"}}));
  EXPECT_EQ(db, 5) << "0, then 5";
  EXPECT_EQ(stream.db(), 5);
}

TEST_F(StreamTest, PingsStandBetweenRecordsAndCount) {
  Log({{"SET", "a", "1"}});
  Text();
  stream.WantPing();
  stream.WantAcks();
  journal.MergeHere();
  Log({{"SET", "b", "1"}});
  EXPECT_EQ(Text(), Commands({{"SELECT", "0"},
                              {"SET", "a", "1"},
                              {"PING"},
                              {"REPLCONF", "GETACK", "*"},
                              {"SET", "b", "1"}}));
}

TEST_F(StreamTest, NoReplicaIsAheadOfTheLog) {
  kept = 0;
  Log({{"SET", "a", "1"}});
  EXPECT_EQ(Text(), "");
  EXPECT_GT(stream.offset(), 0);
  kept = after + 1;
  stream.Kept();
  EXPECT_NE(Text(), "");
}

TEST_F(StreamTest, ForeignCommandsAreMarked) {
  Log({{"SET", "a", "1"}, {"AFC.ADD", "c", "x"}});
  Text();
  const auto mark = stream.Resume(stream.history().id, 0);
  const auto span = mark->backlog->ForeignFrom(0, Reader::kStock);
  ASSERT_TRUE(span);
  EXPECT_EQ(ReadAll(*mark->backlog, mark->place)
                .substr(span->begin, static_cast<size_t>(span->end - span->begin)),
            journal::RespText({"AFC.ADD", "c", "x"}));
  EXPECT_EQ(stream.figures().foreign, 1U);
}

TEST_F(StreamTest, WhoFollowsAMasterHandsOnItsBytes) {
  Log({{"SET", "own", "1"}});
  Text();
  const std::string id = NewId();
  stream.Adopt(id, 700);
  Log({{"SET", "own", "2"}});
  journal.MergeHere();
  const std::string bytes = Commands({{"SELECT", "0"}, {"SET", "a", "1"}, {"AFC.ADD", "c", "x"}});
  stream.AppendRaw(bytes);
  auto mark = stream.Resume(id, 700);
  ASSERT_TRUE(mark);
  EXPECT_EQ(ReadAll(*mark->backlog, mark->place), bytes);
  EXPECT_EQ(stream.figures().foreign, 1U);
  stream.Promote();
  EXPECT_EQ(stream.history().second_id, id);
  EXPECT_EQ(stream.history().second_offset, 701 + static_cast<int64_t>(bytes.size()));
  Log({{"SET", "b", "1"}});
  journal.Flush();
  journal.MergeHere();
  mark = stream.Resume(id, 700 + static_cast<int64_t>(bytes.size()));
  ASSERT_TRUE(mark);
  EXPECT_EQ(ReadAll(*mark->backlog, mark->place), Commands({{"SELECT", "0"}, {"SET", "b", "1"}}));
  EXPECT_FALSE(stream.Resume(id, 701 + static_cast<int64_t>(bytes.size())));
}

TEST_F(StreamTest, GoesOnWithWhatWasLoaded) {
  journal.Detach(stream);
  stream.End();
  History loaded;
  loaded.offset = 700;
  loaded.second_id = NewId();
  loaded.second_offset = 701;
  stream.GoOn(loaded);
  stream.AppendGone(0, "old");
  stream.AppendGone(0, "older");
  stream.AppendGone(2, "oldest");
  const std::string gone = Commands(
      {{"SELECT", "0"}, {"DEL", "old"}, {"DEL", "older"}, {"SELECT", "2"}, {"DEL", "oldest"}});
  journal.Attach(stream);
  Log({{"SET", "a", "1"}});
  journal.Flush();
  journal.MergeHere();
  const auto mark = stream.Resume(loaded.second_id, 700);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->id, loaded.id);
  EXPECT_EQ(ReadAll(*mark->backlog, mark->place),
            gone + Commands({{"SELECT", "0"}, {"SET", "a", "1"}}));
  EXPECT_FALSE(stream.Resume(loaded.second_id, 701)) << "it has seen more than was loaded";
  EXPECT_FALSE(stream.Resume(loaded.second_id, 699));
}

TEST_F(StreamTest, AnotherIdHasNoPast) {
  Log({{"SET", "a", "1"}});
  Text();
  const History before = stream.history();
  stream.ChangeId();
  EXPECT_FALSE(stream.Resume(before.id, before.offset));
  EXPECT_TRUE(stream.Resume(stream.history().id, before.offset));
  EXPECT_EQ(stream.history().second_offset, -1);
}

TEST_F(StreamTest, ItsHistoryEndsWithIt) {
  Log({{"SET", "a", "1"}});
  Text();
  const History before = stream.history();
  journal.Detach(stream);
  stream.End();
  EXPECT_FALSE(stream.running());
  EXPECT_NE(stream.history().id, before.id);
  EXPECT_EQ(stream.history().offset, before.offset);
  EXPECT_FALSE(stream.Resume(before.id, before.offset));
  stream.Begin(1 << 20);
  journal.Attach(stream);
  EXPECT_TRUE(stream.Resume(stream.history().id, before.offset));
}

TEST_F(StreamTest, WhatIsLostEndsTheHistoryButNotTheStream) {
  Log({{"SET", "a", "1"}});
  Text();
  const History before = stream.history();
  stream.Renew();
  const History after_it = stream.history();
  EXPECT_NE(after_it.id, before.id);
  EXPECT_EQ(after_it.offset, before.offset);
  EXPECT_FALSE(stream.Resume(before.id, before.offset));
  Log({{"SET", "b", "1"}});
  journal.Flush();
  journal.MergeHere();
  const auto mark = stream.Resume(after_it.id, before.offset);
  ASSERT_TRUE(mark);
  EXPECT_EQ(ReadAll(*mark->backlog, mark->place), Commands({{"SELECT", "0"}, {"SET", "b", "1"}}));
}

// ---- copies on their way ----

TEST(Transfer, SlowAndFastReadersGetTheSame) {
  Transfer transfer("", 1 << 20);
  int woken = 0;
  const auto fast = transfer.AddReader([&] { ++woken; });
  const auto slow = transfer.AddReader([] {});
  std::string fast_got;
  const auto drain = [&](Transfer::Reader& reader, std::string* got) {
    while (true) {
      const std::string_view bytes = transfer.Read(reader);
      if (bytes.empty()) return;
      *got += bytes;
      transfer.Advance(reader, bytes.size());
    }
  };
  drain(*fast, &fast_got);
  std::string written;
  for (int i = 0; i < 200; ++i) {
    const std::string part = Numbered(2000 * i, 2000 * i + 2000);
    ASSERT_TRUE(transfer.Append(part).ok());
    written += part;
    drain(*fast, &fast_got);
  }
  EXPECT_EQ(fast_got, written);
  EXPECT_EQ(woken, 200);
  EXPECT_LE(transfer.in_memory(), size_t{1} << 20);
  EXPECT_GT(transfer.in_file(), 1 << 20);
  transfer.Finish();
  EXPECT_EQ(transfer.size(), static_cast<int64_t>(written.size()));
  std::string slow_got;
  drain(*slow, &slow_got);
  EXPECT_EQ(slow_got, written);
}

TEST(Transfer, StopsWhenNobodyReadsAnyMore) {
  Transfer transfer("");
  const auto one = transfer.AddReader([] {});
  ASSERT_TRUE(transfer.Append("x").ok());
  transfer.Leave(*one);
  EXPECT_FALSE(transfer.Append("y").ok());
  EXPECT_FALSE(transfer.size());
}

TEST(Transfer, AFileThatCannotBeMadeIsAnError) {
  Transfer transfer("no/such/directory", 1);
  int woken = 0;
  const auto reader = transfer.AddReader([&] { ++woken; });
  ASSERT_TRUE(transfer.Append(std::string(100, 'x')).ok());
  EXPECT_EQ(transfer.Read(*reader).size(), 100U);
  EXPECT_FALSE(transfer.Append(std::string(1 << 20, 'x')).ok());
  EXPECT_TRUE(transfer.error());
}

// ---- what a server sends that is asked for its data ----

TEST(SyncParser, FindsTheFileHoweverItIsCut) {
  const std::string file = Numbered(0, 30);
  const std::string mark(40, 'm');
  const std::string answer = "+FULLRESYNC " + NewId() + " 0\r\n\n";
  for (const std::string& text :
       {answer + "$" + std::to_string(file.size()) + "\r\n" + file + "*1\r\n",
        answer + "$EOF:" + mark + "\r\n" + file + mark}) {
    for (size_t step = 1; step < 80; ++step) {
      std::string got;
      cli::SyncParser parser([&got](std::string_view bytes) {
        got += bytes;
        return base::Status();
      });
      for (size_t at = 0; at < text.size() && !parser.done(); at += step) {
        ASSERT_TRUE(parser.Feed(std::string_view(text).substr(at, step)).ok());
      }
      ASSERT_TRUE(parser.done());
      ASSERT_EQ(got, file);
    }
  }
}

TEST(FuzzCorpus, RepliesAndAnnouncementsHoldTheirProperty) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/replication";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    fuzz::CheckReplication(bytes);
    ++replayed;
  }
  EXPECT_GE(replayed, 12);
}

}  // namespace
}  // namespace sava::replication
