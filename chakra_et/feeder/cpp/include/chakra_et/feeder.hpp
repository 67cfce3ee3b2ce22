// chakra-et feeder: hands out the nodes of an execution trace whose dependencies are done.
//
//   auto feeder = chakra_et::Feeder::open("trace.0.et");
//   if (!feeder) { report(feeder.error().message()); return; }
//   chakra_et::NodeView node;
//   while (feeder->next(node) == chakra_et::Next::node) {
//     run(node.type(), node.duration_ns());
//     feeder->done(node.id());
//   }
//
// A feeder belongs to one thread at a time; different feeders share nothing.
#ifndef CHAKRA_ET_FEEDER_HPP
#define CHAKRA_ET_FEEDER_HPP

#include <memory>
#include <new>

#include "blocked.hpp"
#include "graph.hpp"
#include "pack/place.hpp"
#include "window.hpp"
#ifdef CHAKRA_ET_WITH_ZSTD
#include "pack/pack.hpp"
#endif

namespace chakra_et {

class Feeder {
 public:
  Feeder() = default;

  // A trace file, or a rank of a packed one, as in run.pack/trace.0.et. A file is mapped, or read
  // piece by piece when the options ask for a window.
  static Result<Feeder> open(const std::string& path, const Options& options = Options()) {
    Result<Feeder> feeder = open_file(path, options);
    if (!feeder) return in_file(feeder.error(), path);
    feeder->path_ = path;
    return feeder;
  }
  static Result<Feeder> open(const char* path, const Options& options = Options()) {
    return open(std::string(path), options);
  }

  // Bytes in memory, which the feeder keeps.
  static Result<Feeder> from_blob(Blob&& bytes, const Options& options = Options()) {
    if (options.window == 0) return whole(std::move(bytes), options);
    auto kept = std::make_shared<Blob>(std::move(bytes));
    return windowed(
        [kept]() -> Result<ReadBytes> {
          wire::Span span = kept->span();
          ReadBytes read = read_memory(span.begin, span.size());
          return unpack([kept, read](void* out, size_t room) { return read(out, room); });
        },
        options);
  }

  // Bytes in memory, which must live as long as the feeder.
  static Result<Feeder> from_bytes(const void* data, size_t size,
                                   const Options& options = Options()) {
    if (options.window == 0) return whole(Blob::borrow(data, size), options);
    return windowed([data, size] { return unpack(read_memory(data, size)); }, options);
  }

  // A stream: read as nodes are needed, or to its end when the options ask for no window. It cannot
  // be rewound when a window is used.
  static Result<Feeder> from_stream(ReadBytes read, const Options& options = Options()) {
    if (options.window == 0) {
      Result<ReadBytes> unpacked = unpack(std::move(read));
      if (!unpacked) return unpacked.error();
      Result<Blob> blob = read_all(unpacked.value(), options.max_input);
      if (!blob) return blob.error();
      return whole(std::move(blob.value()), options);
    }
    if (options.repeat != 1) return make_error(Code::not_seekable);
    auto once = std::make_shared<ReadBytes>(std::move(read));
    return windowed(
        [once]() -> Result<ReadBytes> {
          if (!*once) return make_error(Code::not_seekable);
          ReadBytes taken = std::move(*once);
          *once = ReadBytes();
          return unpack(std::move(taken));
        },
        options);
  }

  // Takes the first ready node.
  Next next(NodeView& out) {
    Next answer = engine_->next(out);
    return answer == Next::finished && !is_finished() ? next_round(out) : answer;
  }

  // Up to `room` ready ids, in order. Nothing is taken.
  size_t ready(uint64_t* out, size_t room) const { return engine_->ready(out, room); }
  std::vector<uint64_t> ready() const {
    std::vector<uint64_t> ids(engine_->counts().ready);
    ids.resize(engine_->ready(ids.data(), ids.size()));
    return ids;
  }

  Error take(uint64_t id) { return engine_->take(id); }
  Error done(uint64_t id) {
    if (Error error = engine_->done(id)) return error;
    return engine_->is_finished() && !is_finished() ? next_round() : Error{};
  }
  Error push_back(uint64_t id) { return engine_->push_back(id); }

  // All rounds are over.
  bool is_finished() const {
    return engine_->is_finished() && options_.repeat != 0 && round_ + 1 >= options_.repeat;
  }

  NodeView node(uint64_t id) const { return engine_->node(id); }
  State state(uint64_t id) const { return engine_->state(id); }
  std::vector<Edge> parents(uint64_t id) const { return engine_->node(id).parents(); }
  std::vector<uint64_t> children(uint64_t id) const { return engine_->children(id); }
  MetadataView metadata() const { return engine_->metadata(); }
  Counts counts() const { return engine_->counts(); }
  Error error() const { return path_.empty() ? engine_->error() : in_file(engine_->error(), path_); }
  uint64_t round() const { return round_; }
  size_t memory() const { return engine_->memory(); }

  Blocked blocked(size_t limit = 20) const { return find_blocked(*engine_, limit); }

  // From the start again. rewind() refuses while nodes are taken; reset() forgets them.
  Error rewind() {
    if (uint64_t taken = counts().taken) return make_error(Code::in_flight, 0, taken);
    return reset();
  }
  Error reset() {
    round_ = 0;
    return engine_->restart();
  }

  bool has_window() const { return options_.window != 0; }

  const Engine& engine() const { return *engine_; }

 private:
  static Result<Feeder> open_file(const std::string& path, const Options& options) {
    std::string archive = pack::packed_in(path);
    if (!archive.empty()) return open_packed(archive, path, options);
    if (options.window != 0) {
      return windowed([path] { return open_stream(path.c_str()); }, options);
    }
    Result<Blob> blob = Blob::map(path.c_str());
    if (!blob) return blob.error();
    return whole(std::move(blob.value()), options);
  }

  static Result<Feeder> open_packed(const std::string& archive, const std::string& path,
                                    const Options& options) {
#ifdef CHAKRA_ET_WITH_ZSTD
    Result<Blob> rank = pack::read_packed(archive, path, options.max_input);
    if (!rank) return rank.error();
    return from_blob(std::move(rank.value()), options);
#else
    (void)archive, (void)path, (void)options;
    return make_error(Code::unsupported, 0, 0, 0, "packed ETs (CHAKRA_ET_WITH_ZSTD)");
#endif
  }

  static Result<ReadBytes> open_stream(const char* path) {
    if (pack::is_zip(path)) return make_error(Code::io, 0, 0, 0, packed_whole);
    ReadBytes read = read_path(path);
    if (!read) return make_error(Code::io, 0, 0, 0, "the file cannot be opened");
    return unpack(std::move(read));
  }

  static ReadBytes read_memory(const void* data, size_t size) {
    auto at = std::make_shared<size_t>(0);
    return [data, size, at](void* out, size_t room) -> int64_t {
      size_t n = size - *at < room ? size - *at : room;
      if (n != 0) std::memcpy(out, static_cast<const wire::Byte*>(data) + *at, n);
      *at += n;
      return static_cast<int64_t>(n);
    };
  }

  static Result<Feeder> whole(Blob&& blob, const Options& options) {
    wire::Span span = blob.span();
    if (pack::is_zip(span.begin, span.size())) return make_error(Code::io, 0, 0, 0, packed_whole);
    if (is_gzip(span.begin, span.size()) || is_zstd(span.begin, span.size())) {
      Result<ReadBytes> read = unpack(read_memory(span.begin, span.size()));
      if (!read) return read.error();
      Result<Blob> unpacked = read_all(read.value(), options.max_input);
      if (!unpacked) return unpacked.error();
      return indexed(std::move(unpacked.value()), options);
    }
    return indexed(std::move(blob), options);
  }

  static Result<Feeder> indexed(Blob&& blob, const Options& options) {
    std::unique_ptr<Graph> graph(new (std::nothrow) Graph);
    if (!graph) return make_error(Code::out_of_memory);
    if (Error error = graph->load(std::move(blob), options)) return error;
    return Feeder(std::move(graph), options);
  }

  static Result<Feeder> windowed(Reopen reopen, const Options& options) {
    std::unique_ptr<Window> window(new (std::nothrow) Window);
    if (!window) return make_error(Code::out_of_memory);
    if (Error error = window->open(std::move(reopen), options)) return error;
    return Feeder(std::move(window), options);
  }

  Feeder(std::unique_ptr<Engine> engine, const Options& options)
      : engine_(std::move(engine)), options_(options) {}

  Error next_round() {
    if (counts().done == 0) {  // an empty trace would go round for ever
      round_ = options_.repeat == 0 ? 0 : options_.repeat - 1;
      options_.repeat = round_ + 1;
      return Error{};
    }
    ++round_;
    return engine_->restart();
  }
  Next next_round(NodeView& out) { return next_round() ? Next::failed : next(out); }

  static constexpr char packed_whole[] =
      "a packed file; open one of its ranks, as in run.pack/trace.0.et, or unpack it";

  std::unique_ptr<Engine> engine_;
  Options options_;
  uint64_t round_ = 0;
  std::string path_;  // empty for bytes and streams
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_FEEDER_HPP
