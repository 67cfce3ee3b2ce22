// A growing array of plain values that reports lack of memory instead of throwing.
// Growth goes through realloc, which moves pages rather than bytes when the array is large.
#ifndef CHAKRA_ET_POD_VECTOR_HPP
#define CHAKRA_ET_POD_VECTOR_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

namespace chakra_et {

template <class T>
class PodVector {
  static_assert(std::is_trivially_copyable<T>::value, "plain values only");

 public:
  PodVector() = default;
  PodVector(const PodVector&) = delete;
  PodVector& operator=(const PodVector&) = delete;
  PodVector(PodVector&& other) noexcept { swap(other); }
  PodVector& operator=(PodVector&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PodVector() { std::free(data_); }

  void swap(PodVector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  bool reserve(size_t wanted) {
    if (wanted <= capacity_) return true;
    if (wanted > SIZE_MAX / sizeof(T)) return false;
    void* grown = std::realloc(data_, wanted * sizeof(T));
    if (grown == nullptr) return false;
    data_ = static_cast<T*>(grown);
    capacity_ = wanted;
    return true;
  }

  bool push(T value) {
    if (size_ == capacity_ && !reserve(capacity_ < 64 ? 64 : capacity_ + capacity_ / 2)) {
      return false;
    }
    data_[size_++] = value;
    return true;
  }

  bool append(const T* values, size_t count) {
    if (count > capacity_ - size_) {
      size_t wanted = size_ + count, grown = capacity_ + capacity_ / 2;
      if (!reserve(wanted > grown ? wanted : grown)) return false;
    }
    if (count != 0) std::memcpy(data_ + size_, values, count * sizeof(T));
    size_ += count;
    return true;
  }

  // Replaces the contents with `size` zeros; untouched pages stay unallocated.
  bool assign_zero(size_t size) {
    void* fresh = std::calloc(size != 0 ? size : 1, sizeof(T));
    if (fresh == nullptr) return false;
    std::free(data_);
    data_ = static_cast<T*>(fresh);
    size_ = capacity_ = size;
    return true;
  }

  T pop() { return data_[--size_]; }  // not of an empty array

  void shrink() {
    if (size_ == capacity_ || size_ == 0) return;
    void* smaller = std::realloc(data_, size_ * sizeof(T));
    if (smaller == nullptr) return;
    data_ = static_cast<T*>(smaller);
    capacity_ = size_;
  }

  void release() {
    std::free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() { size_ = 0; }
  void truncate(size_t size) { size_ = size; }  // within the capacity
  size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_POD_VECTOR_HPP
