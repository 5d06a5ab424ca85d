// What Afc is compared with.
//
// ListedInsert is the insert of document S0 (its listing 14) line by line: a singly linked list,
// walked from its head, with the same variables and the same branches. CounterModel says the same
// order in a few words, and knows what the listing does not: increments by more than one, removal
// and the bound of MAXLEN. The tests compare the two with each other, and Afc with both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace sava::types {

using Counted = std::vector<std::pair<std::string, uint64_t>>;

class ListedInsert {
 public:
  explicit ListedInsert(uint64_t most = UINT32_MAX) : most_(most) {}

  void SaveNewAssociatedKey(const std::string& associated_key) {
    if (first_element_ == nullptr) {
      first_element_ = NewNode(associated_key);
      return;
    }
    Node* previous_element = nullptr;
    Node* last_element_in_less_frequent_region = nullptr;
    Node* last_element_in_more_frequent_region = nullptr;
    Node* placeholder = first_element_;
    while (placeholder != nullptr) {
      if (placeholder->associated_key == associated_key) {
        if (placeholder->frequency < most_) ++placeholder->frequency;
        if (previous_element == nullptr) break;
        previous_element->next_node = placeholder->next_node;
        Node* next_node_for_placeholder = nullptr;
        if (last_element_in_less_frequent_region == nullptr) {
          next_node_for_placeholder = first_element_;
          first_element_ = placeholder;
        } else {
          if (placeholder->frequency < last_element_in_less_frequent_region->frequency) {
            next_node_for_placeholder = last_element_in_less_frequent_region->next_node;
            last_element_in_less_frequent_region->next_node = placeholder;
          } else {
            if (last_element_in_more_frequent_region == nullptr) {
              next_node_for_placeholder = first_element_;
              first_element_ = placeholder;
            } else {
              next_node_for_placeholder = last_element_in_more_frequent_region->next_node;
              last_element_in_more_frequent_region->next_node = placeholder;
            }
          }
        }
        placeholder->next_node = next_node_for_placeholder;
        break;
      }
      if (placeholder->next_node != nullptr) {
        Node* next_node = placeholder->next_node;
        if (placeholder->frequency > next_node->frequency) {
          last_element_in_more_frequent_region = last_element_in_less_frequent_region;
          last_element_in_less_frequent_region = placeholder;
        }
        previous_element = placeholder;
        placeholder = next_node;
      } else {
        placeholder->next_node = NewNode(associated_key);
        break;
      }
    }
  }

  Counted All() const {
    Counted all;
    for (const Node* node = first_element_; node != nullptr; node = node->next_node) {
      all.emplace_back(node->associated_key, node->frequency);
    }
    return all;
  }

 private:
  struct Node {
    std::string associated_key;
    uint64_t frequency = 1;
    Node* next_node = nullptr;
  };

  Node* NewNode(const std::string& key) {
    nodes_.push_back({.associated_key = key});
    return &nodes_.back();
  }

  const uint64_t most_;
  std::deque<Node> nodes_;  // nodes do not move
  Node* first_element_ = nullptr;
};

class CounterModel {
 public:
  explicit CounterModel(uint64_t maxlen = 0, uint64_t most = INT64_MAX)
      : maxlen_(maxlen), most_(most) {}

  struct Added {
    uint64_t count;
    bool is_new;
  };

  Added Add(const std::string& member, uint64_t n) {
    const auto found = Find(member);
    const bool is_new = found == all_.end();
    uint64_t count = is_new ? 0 : found->second;
    if (!is_new) {
      all_.erase(found);
    } else if (maxlen_ != 0 && all_.size() == maxlen_) {
      count = all_.back().second;
      all_.pop_back();
    }
    const bool arrives = count == 0 && n == 1;
    count = n > most_ - count ? most_ : count + n;
    auto place = arrives ? all_.end() : std::find_if(all_.begin(), all_.end(), [&](const auto& at) {
      return at.second <= count;
    });
    all_.insert(place, {member, count});
    return {count, is_new};
  }

  bool Remove(const std::string& member) {
    const auto found = Find(member);
    if (found == all_.end()) return false;
    all_.erase(found);
    return true;
  }

  uint64_t Count(const std::string& member) {
    const auto found = Find(member);
    return found == all_.end() ? 0 : found->second;
  }

  const Counted& All() const { return all_; }

 private:
  Counted::iterator Find(const std::string& member) {
    return std::find_if(all_.begin(), all_.end(),
                        [&](const auto& at) { return at.first == member; });
  }

  const uint64_t maxlen_;
  const uint64_t most_;
  Counted all_;
};

}  // namespace sava::types
