#include "engine/invocation.h"

#include <gtest/gtest.h>

#include "engine/engine_context.h"
#include "engine_fixture.h"

namespace sava::engine {
namespace {

// A client at work, and one that listens to the channel "news".
struct Desk {
  Desk() {
    listener.Run({"SUBSCRIBE", "news"});
    test.engine.BeginBatch(lane());
  }
  ~Desk() { test.engine.EndBatch(lane()); }

  Lane& lane() { return writer.lane; }
  Work WorkOf(const char* command, Invocation* outer = nullptr) {
    return {.client = &writer.client, .command = test.table.Find(command), .outer = outer};
  }
  std::string Heard() {
    test.engine.ReceiveMail(lane());
    return listener.TakeOutput();
  }

  TestEngine test{1};
  TestClient writer{test, 0};
  TestClient listener{test, 0};
};

std::string News(const std::string& text) {
  return "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$" + std::to_string(text.size()) + "\r\n" + text +
         "\r\n";
}

TEST(Invocation, TheOutermostCommitsWhatInnerOnesLeaveBehind) {
  Desk desk;
  Invocation outer(desk.lane(), desk.WorkOf("exec"));
  {
    Invocation inner(desk.lane(), desk.WorkOf("set", &outer));
    inner.effects().Tell("news", "one", false);
    inner.Changed(1);
    inner.End();
  }
  {
    Invocation inner(desk.lane(), desk.WorkOf("set", &outer));
    inner.effects().Tell("news", "two", false);
    inner.Abandon();
  }
  EXPECT_FALSE(outer.effects().empty());
  EXPECT_EQ(desk.Heard(), "");
  outer.End();
  EXPECT_TRUE(outer.effects().empty());
  EXPECT_EQ(desk.Heard(), News("one") + News("two"));
}

TEST(Invocation, OneAloneCommitsAtItsEnd) {
  Desk desk;
  Invocation alone(desk.lane(), desk.WorkOf("set"));
  EXPECT_TRUE(alone.outermost());
  alone.effects().Tell("news", "one", false);
  alone.End();
  EXPECT_EQ(desk.Heard(), News("one"));
}

TEST(Invocation, OnlyTheOutermostMayWait) {
  Desk desk;
  Invocation outer(desk.lane(), desk.WorkOf("exec"));
  Invocation inner(desk.lane(), desk.WorkOf("blpop", &outer));
  EXPECT_TRUE(EngineContext(outer).can_block());
  EXPECT_FALSE(EngineContext(inner).can_block());
}

TEST(Invocation, TheServersOwnWorkHasNoClientAndDoesNotWait) {
  Desk desk;
  const Invocation work(desk.lane());
  EXPECT_TRUE(work.origin().admitted);
  EXPECT_TRUE(work.origin().logged);
  EXPECT_FALSE(work.origin().blocks);
  EXPECT_EQ(work.past_ms(), desk.lane().now_ms);
}

TEST(Invocation, KeysDoNotExpireForALog) {
  Desk desk;
  desk.writer.client.origin = kFromLog;
  const Invocation work(desk.lane(), desk.WorkOf("get"));
  EXPECT_EQ(work.past_ms(), INT64_MIN);
}

const Invocation* seen[3];

TEST(Invocation, TheInnermostIsTheOneThatRuns) {
  Desk desk;
  Invocation outer(desk.lane(), desk.WorkOf("exec"));
  EngineContext context(outer);
  EXPECT_EQ(Invocation::Running(), nullptr);
  outer.Run(
      +[](commands::Context& ctx) {
        Invocation& running = EngineContext::Of(ctx).invocation();
        seen[0] = Invocation::Running();
        Invocation inner(running.lane(), {.client = &running.client(), .outer = &running});
        EngineContext inner_context(inner);
        inner.Run(
            +[](commands::Context& deep) {
              EXPECT_EQ(Invocation::Running(), &EngineContext::Of(deep).invocation());
              seen[1] = Invocation::Running();
            },
            inner_context);
        seen[2] = Invocation::Running();
      },
      context);
  EXPECT_EQ(seen[0], &outer);
  EXPECT_NE(seen[1], &outer);
  EXPECT_EQ(seen[2], &outer);
  EXPECT_EQ(Invocation::Running(), nullptr);
}

TEST(Invocation, LargeArgumentsAreCopiedOnceAndHandedOut) {
  const std::string large(64 << 10, 'x');
  const std::string small = "small";
  const std::string_view args[] = {small, large};
  LargeArguments copies;
  copies.Copy(args);
  EXPECT_EQ(copies.Take(small), nullptr);
  base::Blob* const copy = copies.Take(large);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->view(), large);
  EXPECT_EQ(copies.Take(large), nullptr);
  copy->Unref();
}

}  // namespace
}  // namespace sava::engine
