// Errors as values. Nothing in this library throws, prints or ends the process.
#ifndef CHAKRA_ET_ERROR_HPP
#define CHAKRA_ET_ERROR_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "numbers.hpp"

namespace chakra_et {

// What went wrong, and where: the file, the node, the other node if there is one, the byte offset.
struct Error {
  Code code = Code::ok;
  uint64_t node = 0;
  uint64_t other = 0;   // the parent, or a count
  uint64_t offset = 0;  // of the record, in the uncompressed input
  const char* detail = "";  // a literal: never freed
  std::shared_ptr<const std::string> path = nullptr;  // of the file, if it is one

  explicit operator bool() const { return code != Code::ok; }

  std::string message() const { return path ? *path + ": " + problem() : problem(); }

  // The message without the file's path.
  std::string problem() const {
    auto n = std::to_string(node), o = std::to_string(other), at = std::to_string(offset);
    switch (code) {
      case Code::ok: return "ok";
      case Code::io: return std::string("cannot read: ") + detail;
      case Code::truncated: return "the input ends inside the record at byte " + at;
      case Code::malformed: return "the record at byte " + at + " is not a message: " + detail;
      case Code::too_large:
        return "the record at byte " + at + " says it has " + o + " bytes, over the limit";
      case Code::old_schema:
        return "it begins with a node: the schema is older than 0.0.4, in which the same bytes mean "
               "other things, or the metadata is lost";
      case Code::duplicate_id: return "two nodes have the id " + n;
      case Code::missing_parent:
        return "node " + n + " waits for node " + o + ", which is not in the trace";
      case Code::self_edge: return "node " + n + " waits for itself";
      case Code::unknown_node: return "no node " + n;
      case Code::not_ready: return "node " + n + " is not ready: it is " + detail;
      case Code::not_taken: return "node " + n + " is not taken: it is " + detail;
      case Code::blocked:
        return o + " nodes are left, but none is ready and none is taken; see blocked()";
      case Code::in_flight: return o + " nodes are still taken";
      case Code::not_seekable: return "a stream cannot be read again";
      case Code::window_full:
        return "each of the " + o + " nodes in the window waits for one outside it";
      case Code::out_of_memory: return "out of memory";
      case Code::unsupported: return std::string("not built in: ") + detail;
      case Code::invalid_option: return std::string("invalid option: ") + detail;
      case Code::mismatch: return "collective of node " + n + ": " + detail;
      case Code::bad_groups: return "process groups, byte " + at + ": " + detail;
    }
    return code_name(code);
  }
};

inline Error make_error(Code code, uint64_t node = 0, uint64_t other = 0, uint64_t offset = 0,
                        const char* detail = "") {
  return Error{code, node, other, offset, detail};
}

// The error with the file it is about, unless it names one already.
inline Error in_file(Error error, const std::string& path) {
  if (error && !error.path) error.path = std::make_shared<const std::string>(path);
  return error;
}

// A value or an error. Look at it before use: `if (!result) return result.error();`
template <class T>
class Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return error_.code == Code::ok; }
  const Error& error() const { return error_; }
  T& value() { return value_; }
  const T& value() const { return value_; }
  T* operator->() { return &value_; }
  T& operator*() { return value_; }

 private:
  Error error_{};
  T value_{};
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_ERROR_HPP
