#include "types/sketches/top_k.h"

#include <algorithm>
#include <utility>

#include "types/value/save.h"

namespace sava::types {

TopK::TopK(const Options& options)
    : options_(options),
      // Node numbers are of 32 bits.
      capacity_(std::min<uint64_t>(std::max(options.k * 10, options.k + options.width),
                                   UINT32_MAX - 2)) {}

uint32_t TopK::Find(std::string_view item) const {
  return table_.Find(TextTable::HashOf(item),
                     [&](uint32_t node) { return nodes_[node].text == item; });
}

bool TopK::Listed(std::string_view item) const {
  const uint32_t node = Find(item);
  return node != TextTable::kNothing && nodes_[node].listed;
}

uint64_t TopK::Count(std::string_view item) const {
  const uint32_t node = Find(item);
  return node == TextTable::kNothing ? 0 : nodes_[node].count;
}

std::vector<TopK::Item> TopK::List() const {
  Heap order = list_;
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    const Node& x = nodes_[a];
    const Node& y = nodes_[b];
    return x.count != y.count ? x.count > y.count : x.turn < y.turn;
  });
  std::vector<Item> items;
  items.reserve(order.size());
  for (const uint32_t node : order) {
    items.push_back({nodes_[node].text, nodes_[node].count, nodes_[node].error});
  }
  return items;
}

// ---- heaps ----

bool TopK::Lower(uint32_t a, uint32_t b) const {
  const Node& x = nodes_[a];
  const Node& y = nodes_[b];
  return x.count != y.count ? x.count < y.count : x.turn < y.turn;
}

void TopK::Put(Heap& heap, size_t place, uint32_t node) {
  heap[place] = node;
  nodes_[node].place = static_cast<uint32_t>(place);
}

void TopK::SiftUp(Heap& heap, size_t place) {
  const uint32_t node = heap[place];
  while (place != 0 && Lower(node, heap[(place - 1) / 2])) {
    Put(heap, place, heap[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  Put(heap, place, node);
}

void TopK::SiftDown(Heap& heap, size_t place) {
  const uint32_t node = heap[place];
  while (true) {
    size_t child = 2 * place + 1;
    if (child >= heap.size()) break;
    if (child + 1 < heap.size() && Lower(heap[child + 1], heap[child])) ++child;
    if (!Lower(heap[child], node)) break;
    Put(heap, place, heap[child]);
    place = child;
  }
  Put(heap, place, node);
}

void TopK::Push(Heap& heap, uint32_t node) {
  heap.push_back(node);
  SiftUp(heap, heap.size() - 1);
}

// ---- counting ----

// A counter of count 0 for an item that has none: a new one, or the lowest, whose count it takes.
uint32_t TopK::NewNode(std::string_view item) {
  const bool adds = nodes_.size() < capacity_;
  const auto number = adds ? static_cast<uint32_t>(nodes_.size()) : rest_.front();
  // All memory first: without it nothing has changed.
  Node fresh;
  fresh.text = item;
  table_.Reserve();
  BeforeChange(number);
  if (adds) {
    fresh.listed = list_.size() < options_.k;
    Heap& heap = HeapOf(fresh);
    if (heap.size() == heap.capacity()) heap.reserve(std::max<size_t>(1, 2 * heap.size()));
    nodes_.push_back(std::move(fresh));
    Push(heap, number);
  } else {
    table_.Erase(TextTable::HashOf(nodes_[number].text), number);
    nodes_[number].error = nodes_[number].count;
    nodes_[number].text.swap(fresh.text);
  }
  table_.Insert(TextTable::HashOf(item), number);
  return number;
}

std::optional<std::string> TopK::Add(std::string_view item, uint64_t n) {
  uint32_t number = Find(item);
  if (number == TextTable::kNothing) {
    number = NewNode(item);
  } else {
    BeforeChange(number);
  }
  Node& node = nodes_[number];
  node.count = n > kMaxCount - node.count ? kMaxCount : node.count + n;
  node.turn = ++turn_;
  SiftDown(HeapOf(node), node.place);
  return node.listed ? std::nullopt : Promote(number);
}

// Into the list when its count is not below the lowest there, with which it changes places.
std::optional<std::string> TopK::Promote(uint32_t number) {
  const uint32_t last = list_.front();
  if (nodes_[number].count < nodes_[last].count) return std::nullopt;
  BeforeChange(last);
  const size_t place = nodes_[number].place;
  nodes_[number].listed = true;
  nodes_[last].listed = false;
  Put(list_, 0, number);
  SiftDown(list_, 0);
  Put(rest_, place, last);
  SiftDown(rest_, place);
  SiftUp(rest_, nodes_[last].place);
  return nodes_[last].text;
}

// ---- as an object ----

size_t TopK::MemoryUsage(size_t samples) const {
  size_t bytes = sizeof(*this) + nodes_.size() * sizeof(Node) + table_.bytes() +
                 (list_.capacity() + rest_.capacity()) * sizeof(uint32_t);
  const size_t looked_at = samples == 0 ? nodes_.size() : std::min(samples, nodes_.size());
  size_t texts = 0;
  for (size_t i = 0; i < looked_at; ++i) {
    // Short texts stand in the node itself.
    const size_t capacity = nodes_[i].text.capacity();
    if (capacity > std::string().capacity()) texts += capacity + 1;
  }
  if (looked_at != 0) bytes += texts * nodes_.size() / looked_at;
  return bytes;
}

std::unique_ptr<Object> TopK::Copy() const {
  auto copy = std::make_unique<TopK>(options_);
  copy->turn_ = turn_;
  copy->nodes_ = nodes_;
  copy->list_ = list_;
  copy->rest_ = rest_;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    copy->table_.Insert(TextTable::HashOf(nodes_[i].text), i);
  }
  return copy;
}

void TopK::Digest(const std::function<void(std::string_view)>& add) const {
  add(std::to_string(options_.k) + " " + std::to_string(options_.width));
  std::vector<uint32_t> order(nodes_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) { return Lower(a, b); });
  for (const uint32_t i : order) {
    const Node& node = nodes_[i];
    add(node.text);
    add(std::to_string(node.count) + " " + std::to_string(node.error) + (node.listed ? " *" : ""));
  }
}

}  // namespace sava::types
