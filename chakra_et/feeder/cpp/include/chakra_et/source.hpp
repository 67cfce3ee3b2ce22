// Where the bytes come from: a mapped file, memory, or a stream that is read in pieces.
#ifndef CHAKRA_ET_SOURCE_HPP
#define CHAKRA_ET_SOURCE_HPP

#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "error.hpp"
#include "pod_vector.hpp"
#include "wire.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define CHAKRA_ET_HAS_MMAP 1
#endif
#ifdef CHAKRA_ET_WITH_ZLIB
#include <zlib.h>
#endif
#ifdef CHAKRA_ET_WITH_ZSTD
#include <zstd.h>
#endif

namespace chakra_et {

// A whole input in memory. A mapped file holds no file descriptor.
class Blob {
 public:
  Blob() = default;
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;
  Blob(Blob&& other) noexcept { *this = std::move(other); }
  Blob& operator=(Blob&& other) noexcept {
    std::swap(span_, other.span_);
    std::swap(mapped_, other.mapped_);
    owned_.swap(other.owned_);
    return *this;
  }
  ~Blob() {
#ifdef CHAKRA_ET_HAS_MMAP
    if (mapped_) munmap(const_cast<wire::Byte*>(span_.begin), span_.size());
#endif
  }

  static Blob borrow(const void* data, size_t size) {
    Blob blob;
    blob.span_.begin = static_cast<const wire::Byte*>(data);
    blob.span_.end = blob.span_.begin + size;
    return blob;
  }

  static Blob own(PodVector<wire::Byte>&& bytes) {
    Blob blob;
    blob.owned_ = std::move(bytes);
    blob.span_ = wire::Span{blob.owned_.begin(), blob.owned_.end()};
    return blob;
  }

  static Result<Blob> map(const char* path) {
#ifdef CHAKRA_ET_HAS_MMAP
    int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return make_error(Code::io, 0, 0, 0, "the file cannot be opened");
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(fd);
      return make_error(Code::io, 0, 0, 0, "not a regular file");
    }
    Blob blob;
    auto size = static_cast<size_t>(info.st_size);
    void* at = size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) return make_error(Code::io, 0, 0, 0, "the file cannot be mapped");
    if (size != 0) {
      blob.span_.begin = static_cast<wire::Byte*>(at);
      blob.span_.end = blob.span_.begin + size;
      blob.mapped_ = true;
    }
    return blob;
#else
    std::FILE* file = std::fopen(path, "rb");
    if (file == nullptr) return make_error(Code::io, 0, 0, 0, "the file cannot be opened");
    PodVector<wire::Byte> bytes;
    wire::Byte piece[65536];
    size_t got = 0;
    bool ok = true;
    while (ok && (got = std::fread(piece, 1, sizeof piece, file)) != 0) {
      ok = bytes.append(piece, got);
    }
    std::fclose(file);
    if (!ok) return make_error(Code::out_of_memory);
    return own(std::move(bytes));
#endif
  }

  wire::Span span() const { return span_; }

 private:
  wire::Span span_;
  bool mapped_ = false;
  PodVector<wire::Byte> owned_;
};

// A stream: puts up to `size` bytes at `out`, returns how many, 0 at the end, -1 on failure.
using ReadBytes = std::function<int64_t(void* out, size_t size)>;

inline ReadBytes read_file(std::FILE* file) {  // the caller keeps and closes the file
  return [file](void* out, size_t size) -> int64_t {
    size_t got = std::fread(out, 1, size, file);
    return got == 0 && std::ferror(file) ? -1 : static_cast<int64_t>(got);
  };
}

// Opens a file as a stream that closes itself; empty when it cannot be opened.
inline ReadBytes read_path(const char* path) {
  std::shared_ptr<std::FILE> file(std::fopen(path, "rb"), [](std::FILE* f) {
    if (f != nullptr) std::fclose(f);
  });
  if (!file) return ReadBytes();
  std::setvbuf(file.get(), nullptr, _IONBF, 0);  // the callers read in large pieces
  return [file](void* out, size_t size) { return read_file(file.get())(out, size); };
}

inline bool is_gzip(const wire::Byte* p, size_t n) { return n >= 2 && p[0] == 0x1f && p[1] == 0x8b; }
inline bool is_zstd(const wire::Byte* p, size_t n) {
  return n >= 4 && p[0] == 0x28 && p[1] == 0xb5 && p[2] == 0x2f && p[3] == 0xfd;
}

// Unpacks a compressed stream; an empty function when the library for it is not built in.
inline ReadBytes unpack_gzip(ReadBytes inner) {
#ifdef CHAKRA_ET_WITH_ZLIB
  struct Inflater {
    z_stream z{};
    bool open = false, ended = false;
    wire::Byte in[65536];
    ~Inflater() {
      if (open) inflateEnd(&z);
    }
  };
  std::shared_ptr<Inflater> s(new (std::nothrow) Inflater);
  if (!s || inflateInit2(&s->z, 15 + 16) != Z_OK) return ReadBytes();
  s->open = true;
  return [s, inner](void* out, size_t size) -> int64_t {
    s->z.next_out = static_cast<Bytef*>(out);
    auto room = static_cast<uInt>(size < (1u << 30) ? size : (1u << 30));
    s->z.avail_out = room;
    while (s->z.avail_out == room) {
      if (s->z.avail_in == 0) {
        int64_t got = inner(s->in, sizeof s->in);
        if (got < 0) return -1;
        if (got == 0) return s->ended ? 0 : -1;  // a cut file is an error
        s->z.next_in = s->in;
        s->z.avail_in = static_cast<uInt>(got);
      }
      if (s->ended && inflateReset(&s->z) != Z_OK) return -1;  // the next member
      int rc = inflate(&s->z, Z_NO_FLUSH);
      s->ended = rc == Z_STREAM_END;
      if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) return -1;
    }
    return static_cast<int64_t>(room - s->z.avail_out);
  };
#else
  (void)inner;
  return ReadBytes();
#endif
}

inline ReadBytes unpack_zstd(ReadBytes inner) {
#ifdef CHAKRA_ET_WITH_ZSTD
  struct Decoder {
    ZSTD_DStream* z = ZSTD_createDStream();
    ZSTD_inBuffer in{nullptr, 0, 0};
    size_t hint = 1;
    wire::Byte bytes[65536];
    ~Decoder() { ZSTD_freeDStream(z); }
  };
  std::shared_ptr<Decoder> s(new (std::nothrow) Decoder);
  if (!s || s->z == nullptr) return ReadBytes();
  return [s, inner](void* out, size_t size) -> int64_t {
    ZSTD_outBuffer to{out, size, 0};
    while (to.pos == 0) {
      if (s->in.pos == s->in.size) {
        int64_t got = inner(s->bytes, sizeof s->bytes);
        if (got < 0) return -1;
        if (got == 0) return s->hint == 0 ? 0 : -1;
        s->in = ZSTD_inBuffer{s->bytes, static_cast<size_t>(got), 0};
      }
      s->hint = ZSTD_decompressStream(s->z, &to, &s->in);
      if (ZSTD_isError(s->hint)) return -1;
    }
    return static_cast<int64_t>(to.pos);
  };
#else
  (void)inner;
  return ReadBytes();
#endif
}

// Looks at the first bytes of a stream and unpacks it if it is compressed.
inline Result<ReadBytes> unpack(ReadBytes inner) {
  auto head = std::make_shared<std::string>(4, '\0');
  size_t have = 0;
  while (have < 4) {
    int64_t got = inner(&(*head)[have], 4 - have);
    if (got < 0) return make_error(Code::io, 0, 0, 0, "the stream reports an error");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  head->resize(have);
  auto first = reinterpret_cast<const wire::Byte*>(head->data());
  bool gzip = is_gzip(first, have), zstd = is_zstd(first, have);
  ReadBytes whole = [head, inner](void* out, size_t size) -> int64_t {
    if (head->empty()) return inner(out, size);
    size_t n = head->size() < size ? head->size() : size;
    std::memcpy(out, head->data(), n);
    head->erase(0, n);
    return static_cast<int64_t>(n);
  };
  if (gzip || zstd) {
    whole = gzip ? unpack_gzip(std::move(whole)) : unpack_zstd(std::move(whole));
    if (!whole) {
      return make_error(Code::unsupported, 0, 0, 0,
                        gzip ? "gzip (CHAKRA_ET_WITH_ZLIB)" : "zstd (CHAKRA_ET_WITH_ZSTD)");
    }
  }
  return whole;
}

// Reads a stream to its end, up to `limit` bytes.
inline Result<Blob> read_all(const ReadBytes& read, uint64_t limit) {
  PodVector<wire::Byte> bytes;
  wire::Byte piece[65536];
  for (;;) {
    int64_t got = read(piece, sizeof piece);
    if (got < 0) return make_error(Code::io, 0, 0, 0, "the stream reports an error");
    if (got == 0) break;
    auto n = static_cast<size_t>(got);
    if (bytes.size() + n > limit) {
      return make_error(Code::too_large, 0, bytes.size() + n, 0, "");
    }
    if (!bytes.append(piece, n)) return make_error(Code::out_of_memory);
  }
  return Blob::own(std::move(bytes));
}

}  // namespace chakra_et

#endif  // CHAKRA_ET_SOURCE_HPP
