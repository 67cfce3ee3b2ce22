// Columns that grow at their ends to sizes that nobody knows before.
#ifndef CHAKRA_ET_KERNEL_GROWN_HPP
#define CHAKRA_ET_KERNEL_GROWN_HPP

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace chakra_et {
namespace kernel {

// As std::vector, but a large one grows without a copy where the system can move its pages, and so
// without the faults of new ones.
template <class T>
class Grown {
  static_assert(std::is_trivially_copyable_v<T>, "moved as bytes");

 public:
  Grown() = default;
  Grown(Grown&& other) noexcept { swap(other); }
  Grown& operator=(Grown&& other) noexcept {
    swap(other);
    return *this;
  }
  void swap(Grown& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  void push_back(const T& value) {
    if (size_ == room_) make_room(size_ + 1);
    data()[size_++] = value;
  }
  void append(const T* values, size_t count) {
    if (count > room_ - size_) make_room(size_ + count);
    if (count > 0) std::memcpy(data() + size_, values, count * sizeof(T));
    size_ += count;
  }
  void resize(size_t size, const T& value) {
    if (size > room_) make_room(size);
    for (; size_ < size; ++size_) data()[size_] = value;
    size_ = size;
  }
  void clear() { size_ = 0; }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  T& operator[](size_t at) { return data()[at]; }
  const T& operator[](size_t at) const { return data()[at]; }

  // All of it, for whoever frees it with std::free; this is empty then.
  T* release() {
    size_ = room_ = 0;
    return data_.release();
  }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };

  void make_room(size_t least) {
    size_t room = least > 2 * room_ ? least : 2 * room_;
    if (room < 16) room = 16;
    void* data = std::realloc(data_.get(), room * sizeof(T));
    if (data == nullptr) throw std::bad_alloc();
    data_.release();  // realloc has freed it
    data_.reset(static_cast<T*>(data));
    room_ = room;
  }

  std::unique_ptr<T, Free> data_;
  size_t size_ = 0, room_ = 0;
};

}  // namespace kernel
}  // namespace chakra_et

#endif  // CHAKRA_ET_KERNEL_GROWN_HPP
