// The counter of document S0 as it is built there (listings 1 to 6, 9, 10, 12, 13 and 14), for
// comparison_service.cc: a singly linked list per associator in the order of frequency, walked from
// its head by every insert; a queue that takes the associations in; a job that moves them into the
// lists every two minutes. Names and branches are the document's, memory is freed instead of
// collected.
//
// Thread safety: ConcurrentQueue and AssociationRepository from any thread. Where the document has
// a ConcurrentDictionary, a mutex is held here.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace comparison {

template <typename T>
struct ResponseNode {
  T associated_key;
  uint32_t frequency;
};

// Listings 1, 2, 3 and 14.
template <typename T>
class AFCList {
 public:
  AFCList() = default;
  AFCList(const AFCList&) = delete;
  AFCList& operator=(const AFCList&) = delete;
  ~AFCList() {
    while (first_element_ != nullptr) {
      delete std::exchange(first_element_, first_element_->next_node);
    }
  }

  void SaveNewAssociatedKey(const T& associated_key) {
    if (first_element_ == nullptr) {
      first_element_ = new Node{associated_key};
      return;
    }
    Node* previous = nullptr;
    Node* last_less_frequent = nullptr;  // the last element of the region in front
    Node* last_more_frequent = nullptr;  // and of the one before that
    for (Node* placeholder = first_element_; placeholder != nullptr;) {
      if (placeholder->associated_key == associated_key) {
        if (placeholder->frequency < UINT32_MAX) ++placeholder->frequency;
        if (previous != nullptr) {
          previous->next_node = placeholder->next_node;
          Relink(placeholder, last_less_frequent, last_more_frequent);
        }
        return;
      }
      if (placeholder->next_node == nullptr) {
        placeholder->next_node = new Node{associated_key};
        return;
      }
      if (placeholder->frequency > placeholder->next_node->frequency) {
        last_more_frequent = last_less_frequent;
        last_less_frequent = placeholder;
      }
      previous = placeholder;
      placeholder = placeholder->next_node;
    }
  }

  std::vector<ResponseNode<T>> GetMostFrequentAssociatedKeys(size_t number_of_keys) const {
    std::vector<ResponseNode<T>> found;
    for (const Node* node = first_element_; node != nullptr && found.size() < number_of_keys;
         node = node->next_node) {
      found.push_back({node->associated_key, node->frequency});
    }
    return found;
  }

  // Puts a key behind all others, as they come when they are loaded.
  void Append(const T& associated_key, uint32_t frequency) {
    Node* const node = new Node{associated_key, frequency};
    (loaded_ == nullptr ? first_element_ : loaded_->next_node) = node;
    loaded_ = node;
  }

 private:
  struct Node {
    T associated_key;
    uint32_t frequency = 1;
    Node* next_node = nullptr;
  };

  // The second half of listing 14: where an element goes whose frequency has grown.
  void Relink(Node* node, Node* last_less_frequent, Node* last_more_frequent) {
    Node* after = nullptr;
    if (last_less_frequent != nullptr && node->frequency < last_less_frequent->frequency) {
      after = last_less_frequent;
    } else if (last_less_frequent != nullptr) {
      after = last_more_frequent;
    }
    Node*& place = after == nullptr ? first_element_ : after->next_node;
    node->next_node = place;
    place = node;
  }

  Node* first_element_ = nullptr;
  Node* loaded_ = nullptr;
};

// Listings 4, 5 and 6.
template <typename TKey, typename TAssociatedKey>
struct QueueNode {
  TKey key;
  TAssociatedKey associated_key;
  std::unique_ptr<QueueNode> next_node;
};

template <typename TKey, typename TAssociatedKey>
class ConcurrentQueue {
 public:
  using Node = QueueNode<TKey, TAssociatedKey>;

  ConcurrentQueue() = default;
  ConcurrentQueue(const ConcurrentQueue&) = delete;
  ConcurrentQueue& operator=(const ConcurrentQueue&) = delete;
  ~ConcurrentQueue() {
    while (Pop() != nullptr) continue;  // not by recursion
  }

  void InsertNode(std::unique_ptr<Node> new_node) {
    std::lock_guard lock(balance_lock_);
    Node* const added = new_node.get();
    (tail_ == nullptr ? head_ : tail_->next_node) = std::move(new_node);
    tail_ = added;
  }

  std::unique_ptr<Node> Pop() {
    std::lock_guard lock(balance_lock_);
    if (head_ == nullptr) return nullptr;
    std::unique_ptr<Node> node = std::move(head_);
    head_ = std::move(node->next_node);
    if (head_ == nullptr) tail_ = nullptr;
    return node;
  }

 private:
  std::mutex balance_lock_;
  std::unique_ptr<Node> head_;
  Node* tail_ = nullptr;
};

// Listings 9, 12 and 13: the repository, and the job that empties the queue.
template <typename TKey, typename TAssociatedKey, typename Hash>
class AssociationRepository {
 public:
  using Response = std::vector<ResponseNode<TAssociatedKey>>;

  // A job every so many seconds; 0: none, Drain does its work.
  explicit AssociationRepository(unsigned job_seconds) {
    if (job_seconds == 0) return;
    job_ = std::thread([this, job_seconds] {
      std::unique_lock lock(job_mutex_);
      const auto period = std::chrono::seconds(job_seconds);
      while (!ended_.wait_for(lock, period, [this] { return over_; })) Drain();
    });
  }
  ~AssociationRepository() {
    {
      std::lock_guard lock(job_mutex_);
      over_ = true;
    }
    ended_.notify_all();
    if (job_.joinable()) job_.join();
  }

  void SaveNewAssociation(const TKey& key, const TAssociatedKey& associated_key) {
    auto node = std::make_unique<QueueNode<TKey, TAssociatedKey>>();
    node->key = key;
    node->associated_key = associated_key;
    queue_.InsertNode(std::move(node));
  }
  // What the job does with one association; the document measures its time (7.1.2).
  void SaveAssociationInBackground(const TKey& key, const TAssociatedKey& associated_key) {
    std::lock_guard lock(afc_mutex_);
    afc_[key].SaveNewAssociatedKey(associated_key);
  }
  void Drain() {
    while (const auto placeholder = queue_.Pop()) {
      SaveAssociationInBackground(placeholder->key, placeholder->associated_key);
    }
  }
  Response GetMostFrequentAssociatedKeys(const TKey& key, size_t number_of_keys) {
    std::lock_guard lock(afc_mutex_);
    const auto found = afc_.find(key);
    if (found == afc_.end()) return {};
    return found->second.GetMostFrequentAssociatedKeys(number_of_keys);
  }
  void DeleteAllAssociatedKeys(const TKey& key) {
    std::lock_guard lock(afc_mutex_);
    afc_.erase(key);
  }

  // visit(key, associated key, frequency) for all of them, in order within a key.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    std::lock_guard lock(afc_mutex_);
    for (const auto& [key, list] : afc_) {
      for (const auto& node : list.GetMostFrequentAssociatedKeys(SIZE_MAX)) {
        visit(key, node.associated_key, node.frequency);
      }
    }
  }
  // REQUIRES: nothing of the key was saved but by Load, in order.
  void Load(const TKey& key, const TAssociatedKey& associated_key, uint32_t frequency) {
    std::lock_guard lock(afc_mutex_);
    afc_[key].Append(associated_key, frequency);
  }

 private:
  ConcurrentQueue<TKey, TAssociatedKey> queue_;
  std::mutex afc_mutex_;
  std::unordered_map<TKey, AFCList<TAssociatedKey>, Hash> afc_;
  std::mutex job_mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread job_;
};

}  // namespace comparison
