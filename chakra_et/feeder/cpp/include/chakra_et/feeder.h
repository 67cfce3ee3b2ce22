/* The feeder for C, and for every language that can call C.
 *
 * Functions that can fail return CHAKRA_ET_OK or a code and fill `error` (which may be NULL).
 * Nothing is printed, thrown or ended. A feeder belongs to one thread at a time. */
#ifndef CHAKRA_ET_FEEDER_H
#define CHAKRA_ET_FEEDER_H

#include <stddef.h>
#include <stdint.h>

#include "numbers.h"

#if defined(_WIN32) && defined(CHAKRA_ET_SHARED)
#define CHAKRA_ET_API __declspec(dllexport)
#elif defined(__GNUC__)
#define CHAKRA_ET_API __attribute__((visibility("default")))
#else
#define CHAKRA_ET_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CHAKRA_ET_ABI 1 /* grows when a struct or a function changes its meaning */
CHAKRA_ET_API uint32_t chakra_et_abi(void);

typedef struct chakra_et_feeder chakra_et_feeder;

typedef struct {
  int32_t code;
  uint64_t node, other, offset;
  char message[232];
} chakra_et_error;

/* Set the defaults with chakra_et_options_init, then what differs. */
typedef struct {
  uint32_t gate;          /* mask of edge kinds that gate; all by default */
  uint8_t order;          /* 0 by id, 1 by start time */
  uint8_t missing_parent; /* 0 fail, 1 drop the edge, 2 let the node wait */
  uint8_t self_edge;      /* the same */
  uint8_t skip_metadata;
  uint8_t strict_window;
  uint64_t window;        /* nodes held at once; 0: all */
  uint64_t repeat;        /* rounds; 0: for ever */
  uint64_t max_record, max_input; /* bytes */
} chakra_et_options;

/* A node. The pointers belong to the feeder, and are good until the node is done (with a window)
 * or the feeder is closed. */
typedef struct {
  uint64_t id;
  int64_t start_ns, duration_ns;
  uint64_t duration_micros;
  uint32_t type;
  uint8_t has_start, has_duration;
  uint8_t is_cpu_op, has_is_cpu_op;
  const char* name; /* not ended by a zero byte */
  size_t name_size;
  const uint8_t* message; /* the node as protobuf bytes */
  size_t message_size;
} chakra_et_node;

typedef struct {
  uint64_t id;
  uint32_t kind; /* one bit of the edge kinds */
  uint32_t inferred;
} chakra_et_edge;

typedef struct {
  uint64_t waiting, ready, taken, done, held, peak_held;
  uint32_t all_read;
} chakra_et_counts;

/* Puts up to `size` bytes at `out`; returns how many, 0 at the end, -1 on failure. */
typedef int64_t (*chakra_et_read)(void* context, void* out, size_t size);

CHAKRA_ET_API void chakra_et_options_init(chakra_et_options* options);

/* `options` may be NULL. */
CHAKRA_ET_API int chakra_et_open(const char* path, const chakra_et_options* options,
                                 chakra_et_feeder** out, chakra_et_error* error);
CHAKRA_ET_API int chakra_et_open_bytes(const void* data, size_t size,
                                       const chakra_et_options* options, chakra_et_feeder** out,
                                       chakra_et_error* error);
CHAKRA_ET_API int chakra_et_open_stream(chakra_et_read read, void* context,
                                        const chakra_et_options* options, chakra_et_feeder** out,
                                        chakra_et_error* error);
CHAKRA_ET_API void chakra_et_close(chakra_et_feeder* feeder);

/* Takes the first ready node; returns a chakra_et_next. */
CHAKRA_ET_API int chakra_et_take_next(chakra_et_feeder* feeder, chakra_et_node* out,
                                      chakra_et_error* error);
/* Takes up to `room` ready nodes; `why` says what ended it when fewer came. */
CHAKRA_ET_API size_t chakra_et_take_many(chakra_et_feeder* feeder, uint64_t* ids, size_t room,
                                         int* why, chakra_et_error* error);
/* Takes and finishes up to `room` nodes one after the other: the order of a run in which each node
 * is done before the next is taken. Only for feeders without a window. */
CHAKRA_ET_API size_t chakra_et_run(chakra_et_feeder* feeder, chakra_et_node* out, size_t room,
                                   int* why, chakra_et_error* error);
CHAKRA_ET_API size_t chakra_et_ready(const chakra_et_feeder* feeder, uint64_t* ids, size_t room);
CHAKRA_ET_API int chakra_et_take(chakra_et_feeder* feeder, uint64_t id, chakra_et_error* error);
CHAKRA_ET_API int chakra_et_done(chakra_et_feeder* feeder, uint64_t id, chakra_et_error* error);
CHAKRA_ET_API int chakra_et_push_back(chakra_et_feeder* feeder, uint64_t id,
                                      chakra_et_error* error);
CHAKRA_ET_API int chakra_et_done_many(chakra_et_feeder* feeder, const uint64_t* ids, size_t count,
                                      chakra_et_error* error);

CHAKRA_ET_API int chakra_et_is_finished(const chakra_et_feeder* feeder);
CHAKRA_ET_API int chakra_et_rewind(chakra_et_feeder* feeder, chakra_et_error* error);
CHAKRA_ET_API int chakra_et_reset(chakra_et_feeder* feeder, chakra_et_error* error);
CHAKRA_ET_API uint64_t chakra_et_round(const chakra_et_feeder* feeder);
CHAKRA_ET_API void chakra_et_count(const chakra_et_feeder* feeder, chakra_et_counts* out);

/* 0 unknown, 1 waiting, 2 ready, 3 taken, 4 done */
CHAKRA_ET_API int chakra_et_state(const chakra_et_feeder* feeder, uint64_t id);
CHAKRA_ET_API int chakra_et_get_node(const chakra_et_feeder* feeder, uint64_t id,
                                     chakra_et_node* out); /* 1 found, 0 not */
/* These two return how many there are, and fill in as many as there is room for. */
CHAKRA_ET_API size_t chakra_et_parents(const chakra_et_feeder* feeder, uint64_t id,
                                       chakra_et_edge* out, size_t room);
CHAKRA_ET_API size_t chakra_et_children(const chakra_et_feeder* feeder, uint64_t id, uint64_t* out,
                                        size_t room);

/* Attributes by name: 1 when there, in a kind that fits; 0 when not. */
CHAKRA_ET_API int chakra_et_attr_int(const chakra_et_node* node, const char* name, int64_t* out);
CHAKRA_ET_API int chakra_et_attr_double(const chakra_et_node* node, const char* name, double* out);
CHAKRA_ET_API int chakra_et_attr_string(const chakra_et_node* node, const char* name,
                                        const char** out, size_t* size);

/* Why nothing happens, as text. Returns the text's length without the final zero byte; at most
 * `room` bytes are written, the zero byte among them. */
CHAKRA_ET_API size_t chakra_et_blocked(const chakra_et_feeder* feeder, size_t limit, char* out,
                                       size_t room);

#ifdef __cplusplus
}
#endif

#endif /* CHAKRA_ET_FEEDER_H */
