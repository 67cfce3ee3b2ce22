// Record after record from a stream, through a buffer that holds little more than one record.
#ifndef CHAKRA_ET_READER_HPP
#define CHAKRA_ET_READER_HPP

#include "frames.hpp"
#include "source.hpp"

namespace chakra_et {

// Opens the input, again for each rewind.
using Reopen = std::function<Result<ReadBytes>()>;

class Reader {
 public:
  Error open(const Reopen& reopen, uint64_t max_record) {
    Result<ReadBytes> opened = reopen();
    if (!opened) return opened.error();
    read_ = std::move(opened.value());
    max_record_ = max_record;
    buffer_.clear();
    metadata_.clear();
    at_ = offset_ = record_offset_ = 0;
    first_ = true;
    at_end_ = false;
    return Error{};
  }

  // The next node record; sets `ended` when there is none. Valid until the next call.
  Error next(wire::Span& record, bool& ended) {
    if (first_) {
      if (Error error = cut(record, ended)) return error;
      if (ended) return make_error(Code::truncated);
      if (Error error = frames::require_metadata(record, record_offset_)) return error;
      if (!metadata_.append(record.begin, record.size())) return make_error(Code::out_of_memory);
      first_ = false;
    }
    if (Error error = cut(record, ended)) return error;
    return ended ? Error{} : frames::require_node(record, record_offset_);
  }

  uint64_t record_offset() const { return record_offset_; }
  wire::Span metadata() const { return wire::Span{metadata_.begin(), metadata_.end()}; }
  size_t memory() const { return buffer_.bytes() + metadata_.bytes(); }

 private:
  static constexpr size_t piece = 65536;

  Error cut(wire::Span& record, bool& ended) {
    for (;;) {
      wire::Span rest{buffer_.begin() + at_, buffer_.end()};
      record_offset_ = offset_ + at_;
      Error error = rest.size() == 0 ? make_error(Code::truncated)
                                     : frames::cut(rest, record_offset_, max_record_, record);
      if (!error) {
        at_ = static_cast<size_t>(rest.begin - buffer_.begin());
        return error;
      }
      if (error.code != Code::truncated) return error;
      if (at_end_) {
        ended = rest.size() == 0;
        return ended ? Error{} : error;
      }
      if (Error failed = more()) return failed;
    }
  }

  Error more() {
    if (at_ != 0) {
      size_t left = buffer_.size() - at_;
      std::memmove(buffer_.begin(), buffer_.begin() + at_, left);
      buffer_.truncate(left);
      offset_ += at_;
      at_ = 0;
    }
    size_t have = buffer_.size();
    // Twice as much each time, so that one huge record costs no quadratic rescanning.
    size_t wanted = have < piece ? piece : have;
    if (!buffer_.reserve(have + wanted)) return make_error(Code::out_of_memory);
    int64_t got = read_(buffer_.begin() + have, wanted);
    if (got < 0) return make_error(Code::io, 0, 0, offset_ + have, "the stream reports an error");
    at_end_ = got == 0;
    buffer_.truncate(have + static_cast<size_t>(got));
    return Error{};
  }

  ReadBytes read_;
  PodVector<wire::Byte> buffer_;    // at_ onwards is unread; the front lies at offset_ of the input
  PodVector<wire::Byte> metadata_;
  size_t at_ = 0;
  uint64_t offset_ = 0, record_offset_ = 0, max_record_ = 0;
  bool first_ = true, at_end_ = false;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_READER_HPP
