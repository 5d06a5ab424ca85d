// Records and the framing by which a consumer makes a stream of commands of them.
#include "journal/record.h"

#include <gtest/gtest.h>

#include "journal_text.h"

namespace sava::journal {
namespace {

const std::string kMulti = RespText({"MULTI"});
const std::string kExec = RespText({"EXEC"});

std::string Select(const std::string& database) { return RespText({"SELECT", database}); }

std::string Framed(Framing& framing, const MadeRecord& made) {
  std::string out;
  framing.Append(made.record(), out);
  return out;
}

TEST(Record, ShowsItsEffectsInOrder) {
  const MadeRecord made(7, {{3, {"SET", "a", "1"}}, {70'000, {"DEL", "b"}}, {0, {""}}}, kToLog);
  const Record record = made.record();
  EXPECT_EQ(record.ticket(), 7U);
  ASSERT_EQ(record.size(), 3U);
  EXPECT_EQ(record.bytes(), RespText({"SET", "a", "1"}) + RespText({"DEL", "b"}) + RespText({""}));
  std::vector<std::pair<uint32_t, std::string>> found;
  for (const Effect& effect : record) {
    EXPECT_EQ(effect.to, kToLog);
    found.emplace_back(effect.database, effect.bytes);
  }
  EXPECT_EQ(found, (std::vector<std::pair<uint32_t, std::string>>{{3, RespText({"SET", "a", "1"})},
                                                                  {70'000, RespText({"DEL", "b"})},
                                                                  {0, RespText({""})}}));
}

TEST(Framing, SelectsADatabaseWhereItChanges) {
  Framing framing(kToLog);
  const std::string command = RespText({"SET", "a", "1"});
  EXPECT_EQ(Framed(framing, {1, {{0, {"SET", "a", "1"}}}}), Select("0") + command);
  EXPECT_EQ(Framed(framing, {2, {{0, {"SET", "a", "1"}}}}), command);
  EXPECT_EQ(Framed(framing, {3, {{12, {"SET", "a", "1"}}}}), Select("12") + command);
  framing.Restart();
  EXPECT_EQ(Framed(framing, {4, {{12, {"SET", "a", "1"}}}}), Select("12") + command);
}

TEST(Framing, SeveralEffectsAreATransaction) {
  Framing framing(kToLog);
  EXPECT_EQ(Framed(framing, {1, {{2, {"DEL", "a"}}, {2, {"DEL", "b"}}, {3, {"DEL", "c"}}}}),
            Select("2") + kMulti + RespText({"DEL", "a"}) + RespText({"DEL", "b"}) + Select("3") +
                RespText({"DEL", "c"}) + kExec);
}

TEST(Framing, LeavesOutWhatIsForOthers) {
  Framing log(kToLog);
  Framing replicas(kToReplicas);
  const MadeRecord published(1, {{5, {"PUBLISH", "a", "b"}}, {5, {"PUBLISH", "a", "c"}}},
                             kToReplicas);
  EXPECT_EQ(Framed(log, published), "");
  EXPECT_EQ(Framed(replicas, published), Select("5") + kMulti + RespText({"PUBLISH", "a", "b"}) +
                                             RespText({"PUBLISH", "a", "c"}) + kExec);
  // Each has selected its own database.
  const MadeRecord change(2, {{5, {"DEL", "a"}}});
  EXPECT_EQ(Framed(log, change), Select("5") + RespText({"DEL", "a"}));
  EXPECT_EQ(Framed(replicas, change), RespText({"DEL", "a"}));
}

// A record of several effects of which one is for this destination is no transaction there.
TEST(Framing, OneEffectThatIsLeftStandsAlone) {
  Journal journal(1);
  struct Both final : Consumer {
    void Receive(const Record& record) override {
      to_log.Append(record, log);
      to_replicas.Append(record, feed);
    }
    Framing to_log{kToLog};
    Framing to_replicas{kToReplicas};
    std::string log;
    std::string feed;
  } both;
  journal.Attach(both);
  const std::string_view change[] = {"DEL", "a"};
  const std::string_view message[] = {"PUBLISH", "a", "b"};
  journal.Add(0, message, 4, kToReplicas);
  journal.Add(0, change, 4);
  journal.Append(0, 0);
  journal.Detach(both);
  EXPECT_EQ(both.log, Select("4") + RespText({"DEL", "a"}));
  EXPECT_EQ(both.feed, Select("4") + kMulti + RespText({"PUBLISH", "a", "b"}) +
                           RespText({"DEL", "a"}) + kExec);
}

}  // namespace
}  // namespace sava::journal
