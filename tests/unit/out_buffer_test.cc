// Output buffers: bytes and blobs leave in order however they are sent.
#include "protocol/out_buffer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "protocol/reply.h"

namespace sava::protocol {
namespace {

std::string Drain(OutBuffer& out, std::mt19937& random) {
  std::string sent;
  while (!out.empty()) {
    iovec vectors[4];
    const size_t count = out.Gather(vectors, 4);
    size_t available = 0;
    for (size_t i = 0; i < count; ++i) available += vectors[i].iov_len;
    size_t n = 1 + random() % available;
    out.pending();
    size_t left = n;
    for (size_t i = 0; i < count && left > 0; ++i) {
      const size_t part = std::min(left, vectors[i].iov_len);
      sent.append(static_cast<char*>(vectors[i].iov_base), part);
      left -= part;
    }
    out.Consume(n);
  }
  return sent;
}

TEST(OutBuffer, SendsBytesAndBlobsInOrderThroughPartialWrites) {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    OutBuffer out;
    std::string expected;
    for (unsigned i = 0; i < random() % 20; ++i) {
      const std::string piece(random() % 300, static_cast<char>('a' + i));
      if (random() % 3 == 0) {
        base::Blob* blob = base::Blob::Copy(piece);
        out.AppendBlob(blob);
        blob->Unref();
      } else {
        out.Append(piece);
      }
      expected += piece;
    }
    EXPECT_EQ(out.pending(), expected.size());
    EXPECT_EQ(Drain(out, random), expected) << "seed " << seed;
  }
}

TEST(OutBuffer, InsertsAHeaderBeforeWhatCameSince) {
  OutBuffer out;
  Reply reply(&out, 2);
  reply.Ok();
  const size_t mark = reply.Mark();
  reply.Bulk("a");
  reply.Bulk("b");
  reply.ArrayAt(mark, 2);
  EXPECT_EQ(out.Since(0), "+OK\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n");
}

TEST(OutBuffer, TruncateForgetsBlobsToo) {
  std::mt19937 random(1);
  OutBuffer out;
  out.Append("keep");
  const size_t mark = out.Mark();
  base::Blob* blob = base::Blob::Copy("gone");
  out.AppendBlob(blob);
  out.Append("gone too");
  out.TruncateTo(mark);
  EXPECT_TRUE(blob->unique());
  blob->Unref();
  EXPECT_EQ(Drain(out, random), "keep");
}

TEST(OutBuffer, CutsOffWhatCameSinceWithItsBlobs) {
  std::mt19937 random(3);
  OutBuffer out;
  base::Blob* blob = base::Blob::Copy("blob");
  out.Append("keep ");
  out.AppendBlob(blob);
  out.Append(".");
  const size_t mark = out.Mark();
  out.Append("one ");
  out.AppendBlob(blob);
  out.Append(" two ");
  out.AppendBlob(blob);
  EXPECT_EQ(out.CutFrom(mark), "one blob two blob");
  EXPECT_EQ(Drain(out, random), "keep blob.");
  EXPECT_TRUE(blob->unique());
  blob->Unref();
}

TEST(OutBuffer, TakesNothingMoreOnceOverItsLimit) {
  OutBuffer out;
  out.set_limit(10'000);
  Reply reply(&out, 2);
  const size_t mark = reply.Mark();
  for (int i = 0; i < 90; ++i) reply.Bulk(std::string(100, 'x'));
  EXPECT_FALSE(reply.over());
  EXPECT_LE(out.memory(), 10'000U);
  for (int i = 0; i < 10; ++i) reply.Bulk(std::string(100, 'x'));
  EXPECT_TRUE(reply.over());
  EXPECT_EQ(out.memory(), 0U);
  // Whatever comes now is dropped, and marks of before do no harm.
  reply.ArrayAt(mark, 100);
  reply.Int(5);
  reply.Ints({1, 2});
  reply.Error("ERR x");
  out.TruncateTo(mark + 5);
  EXPECT_EQ(out.Since(mark), "");
  EXPECT_TRUE(out.empty());
}

TEST(OutBuffer, CountsBlobsTowardItsLimit) {
  base::Blob* blob = base::Blob::Copy(std::string(50'000, 'b'));
  OutBuffer out;
  out.set_limit(120'000);
  Reply reply(&out, 2);
  reply.BulkBlob(blob);
  reply.BulkBlob(blob);
  EXPECT_FALSE(out.over());
  reply.BulkBlob(blob);
  EXPECT_TRUE(out.over());
  EXPECT_TRUE(blob->unique());
  blob->Unref();
}

TEST(OutBuffer, SentBytesDoNotCountTowardTheLimit) {
  OutBuffer out;
  out.set_limit(10'000);
  for (int i = 0; i < 100; ++i) {
    out.Append(std::string(5'000, 'x'));
    out.Consume(4'999);
    ASSERT_FALSE(out.over()) << i;
  }
}

TEST(Reply, WritesTheFormOfEachProtocol) {
  const auto write = [](int resp, auto&& call) {
    OutBuffer out;
    Reply reply(&out, resp);
    call(reply);
    return std::string(out.Since(0));
  };
  EXPECT_EQ(write(2, [](Reply& r) { r.Null(); }), "$-1\r\n");
  EXPECT_EQ(write(3, [](Reply& r) { r.Null(); }), "_\r\n");
  EXPECT_EQ(write(2, [](Reply& r) { r.NullArray(); }), "*-1\r\n");
  EXPECT_EQ(write(3, [](Reply& r) { r.NullArray(); }), "_\r\n");
  EXPECT_EQ(write(2, [](Reply& r) { r.Map(1); }), "*2\r\n");
  EXPECT_EQ(write(3, [](Reply& r) { r.Map(1); }), "%1\r\n");
  EXPECT_EQ(write(2, [](Reply& r) { r.Double(1.5); }), "$3\r\n1.5\r\n");
  EXPECT_EQ(write(3, [](Reply& r) { r.Double(1.5); }), ",1.5\r\n");
  EXPECT_EQ(write(2, [](Reply& r) { r.Bool(true); }), ":1\r\n");
  EXPECT_EQ(write(3, [](Reply& r) { r.Bool(true); }), "#t\r\n");
  EXPECT_EQ(write(3, [](Reply& r) { r.Verbatim("txt", "hi"); }), "=6\r\ntxt:hi\r\n");
  EXPECT_EQ(write(2, [](Reply& r) { r.Int(-1234567890123); }), ":-1234567890123\r\n");
  EXPECT_EQ(write(2, [](Reply& r) { r.Error("ERR a\r\nb"); }), "-ERR a  b\r\n");
}

}  // namespace
}  // namespace sava::protocol
