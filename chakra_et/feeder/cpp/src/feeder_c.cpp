// The C interface, on top of the header library. Compile this one file to get a library.
#include "chakra_et/feeder.h"

#include <cstdio>

#include "chakra_et/feeder.hpp"

struct chakra_et_feeder {
  chakra_et::Feeder feeder;
};

namespace {

using chakra_et::Code;
using chakra_et::Error;
using chakra_et::Feeder;
using chakra_et::NodeView;

int tell(const Error& from, chakra_et_error* to) {
  if (to != nullptr) {
    to->code = static_cast<int32_t>(from.code);
    to->node = from.node;
    to->other = from.other;
    to->offset = from.offset;
    std::snprintf(to->message, sizeof to->message, "%s", from.message().c_str());
  }
  return static_cast<int>(from.code);
}

// Runs `body`, which returns a T; lack of memory becomes `failed`, as nothing else can throw.
template <class T, class Body>
T guard(T failed, chakra_et_error* error, Body body) {
  try {
    return body();
  } catch (...) {
    if (error != nullptr) {
      *error = chakra_et_error();
      error->code = CHAKRA_ET_OUT_OF_MEMORY;
      std::snprintf(error->message, sizeof error->message, "out of memory");
    }
    return failed;
  }
}

bool convert(const chakra_et_options* from, chakra_et::Options& to) {
  if (from == nullptr) return true;
  if (from->order > 1 || from->missing_parent > 2 || from->self_edge > 2) return false;
  to.gate = from->gate;
  to.order = static_cast<chakra_et::Order>(from->order);
  to.missing_parent = static_cast<chakra_et::Fault>(from->missing_parent);
  to.self_edge = static_cast<chakra_et::Fault>(from->self_edge);
  to.skip_metadata = from->skip_metadata != 0;
  to.strict_window = from->strict_window != 0;
  to.window = from->window;
  to.repeat = from->repeat;
  to.max_record = from->max_record;
  to.max_input = from->max_input;
  return true;
}

template <class Open>
int open_with(const chakra_et_options* options, chakra_et_feeder** out, chakra_et_error* error,
              Open open) {
  *out = nullptr;
  return guard(static_cast<int>(CHAKRA_ET_OUT_OF_MEMORY), error, [&] {
    chakra_et::Options wanted;
    if (!convert(options, wanted)) {
      return tell(chakra_et::make_error(Code::invalid_option, 0, 0, 0, "a number out of range"),
                  error);
    }
    chakra_et::Result<Feeder> opened = open(wanted);
    if (!opened) return tell(opened.error(), error);
    *out = new chakra_et_feeder{std::move(opened.value())};
    return tell(Error{}, error);
  });
}

void fill(const NodeView& from, chakra_et_node* to) {
  to->id = from.id();
  to->start_ns = from.start_ns();
  to->duration_ns = from.duration_ns();
  to->duration_micros = from.duration_micros();
  to->type = from.type_number();
  to->has_start = from.has_start();
  to->has_duration = from.has_duration();
  auto is_cpu_op = from.is_cpu_op();
  to->has_is_cpu_op = is_cpu_op.has_value();
  to->is_cpu_op = is_cpu_op.value_or(false);
  to->name = from.name().data();
  to->name_size = from.name().size();
  to->message = from.message().begin;
  to->message_size = from.message().size();
}

chakra_et::Attr attribute(const chakra_et_node* node, const char* name) {
  return NodeView(chakra_et::wire::Span{node->message, node->message + node->message_size})
      .attr(name);
}

// Takes up to `room` nodes and hands each to `use`, which may refuse with an error.
template <class Use>
size_t take_up_to(chakra_et_feeder* feeder, size_t room, int* why, chakra_et_error* error,
                  Use use) {
  size_t count = 0;
  *why = CHAKRA_ET_NEXT_NODE;
  guard(0, error, [&] {
    NodeView node;
    while (count < room) {
      *why = static_cast<int>(feeder->feeder.next(node));
      if (*why != CHAKRA_ET_NEXT_NODE) break;
      Error failed = use(count, node);
      if (failed) {
        tell(failed, error);
        *why = CHAKRA_ET_NEXT_FAILED;
        break;
      }
      ++count;
    }
    if (*why == CHAKRA_ET_NEXT_FAILED && feeder->feeder.error()) tell(feeder->feeder.error(), error);
    return 0;
  });
  return count;
}

}  // namespace

extern "C" {

uint32_t chakra_et_abi(void) { return CHAKRA_ET_ABI; }

void chakra_et_options_init(chakra_et_options* options) {
  chakra_et::Options defaults;
  *options = chakra_et_options();
  options->gate = defaults.gate;
  options->repeat = defaults.repeat;
  options->max_record = defaults.max_record;
  options->max_input = defaults.max_input;
}

int chakra_et_open(const char* path, const chakra_et_options* options, chakra_et_feeder** out,
                   chakra_et_error* error) {
  return open_with(options, out, error,
                   [&](const chakra_et::Options& wanted) { return Feeder::open(path, wanted); });
}

int chakra_et_open_bytes(const void* data, size_t size, const chakra_et_options* options,
                         chakra_et_feeder** out, chakra_et_error* error) {
  return open_with(options, out, error, [&](const chakra_et::Options& wanted) {
    return Feeder::from_bytes(data, size, wanted);
  });
}

int chakra_et_open_stream(chakra_et_read read, void* context, const chakra_et_options* options,
                          chakra_et_feeder** out, chakra_et_error* error) {
  return open_with(options, out, error, [&](const chakra_et::Options& wanted) {
    return Feeder::from_stream(
        [read, context](void* to, size_t size) { return read(context, to, size); }, wanted);
  });
}

void chakra_et_close(chakra_et_feeder* feeder) { delete feeder; }

int chakra_et_take_next(chakra_et_feeder* feeder, chakra_et_node* out, chakra_et_error* error) {
  return guard(static_cast<int>(CHAKRA_ET_NEXT_FAILED), error, [&] {
    NodeView node;
    chakra_et::Next answer = feeder->feeder.next(node);
    if (answer == chakra_et::Next::node) fill(node, out);
    if (answer == chakra_et::Next::failed) tell(feeder->feeder.error(), error);
    return static_cast<int>(answer);
  });
}

size_t chakra_et_take_many(chakra_et_feeder* feeder, uint64_t* ids, size_t room, int* why,
                           chakra_et_error* error) {
  return take_up_to(feeder, room, why, error, [&](size_t i, const NodeView& node) {
    ids[i] = node.id();
    return Error{};
  });
}

size_t chakra_et_run(chakra_et_feeder* feeder, chakra_et_node* out, size_t room, int* why,
                     chakra_et_error* error) {
  if (feeder->feeder.has_window()) {  // the bytes of a node go when it is done
    tell(chakra_et::make_error(Code::invalid_option, 0, 0, 0, "run() needs the whole trace"), error);
    *why = CHAKRA_ET_NEXT_FAILED;
    return 0;
  }
  return take_up_to(feeder, room, why, error, [&](size_t i, const NodeView& node) {
    fill(node, &out[i]);
    return feeder->feeder.done(node.id());
  });
}

size_t chakra_et_ready(const chakra_et_feeder* feeder, uint64_t* ids, size_t room) {
  return feeder->feeder.ready(ids, room);
}

int chakra_et_take(chakra_et_feeder* feeder, uint64_t id, chakra_et_error* error) {
  return guard(static_cast<int>(CHAKRA_ET_OUT_OF_MEMORY), error,
               [&] { return tell(feeder->feeder.take(id), error); });
}

int chakra_et_done(chakra_et_feeder* feeder, uint64_t id, chakra_et_error* error) {
  return guard(static_cast<int>(CHAKRA_ET_OUT_OF_MEMORY), error,
               [&] { return tell(feeder->feeder.done(id), error); });
}

int chakra_et_push_back(chakra_et_feeder* feeder, uint64_t id, chakra_et_error* error) {
  return guard(static_cast<int>(CHAKRA_ET_OUT_OF_MEMORY), error,
               [&] { return tell(feeder->feeder.push_back(id), error); });
}

int chakra_et_done_many(chakra_et_feeder* feeder, const uint64_t* ids, size_t count,
                        chakra_et_error* error) {
  return guard(static_cast<int>(CHAKRA_ET_OUT_OF_MEMORY), error, [&] {
    for (size_t i = 0; i < count; ++i) {
      if (Error failed = feeder->feeder.done(ids[i])) return tell(failed, error);
    }
    return tell(Error{}, error);
  });
}

int chakra_et_is_finished(const chakra_et_feeder* feeder) { return feeder->feeder.is_finished(); }

int chakra_et_rewind(chakra_et_feeder* feeder, chakra_et_error* error) {
  return guard(static_cast<int>(CHAKRA_ET_OUT_OF_MEMORY), error,
               [&] { return tell(feeder->feeder.rewind(), error); });
}

int chakra_et_reset(chakra_et_feeder* feeder, chakra_et_error* error) {
  return guard(static_cast<int>(CHAKRA_ET_OUT_OF_MEMORY), error,
               [&] { return tell(feeder->feeder.reset(), error); });
}

uint64_t chakra_et_round(const chakra_et_feeder* feeder) { return feeder->feeder.round(); }

void chakra_et_count(const chakra_et_feeder* feeder, chakra_et_counts* out) {
  chakra_et::Counts counts = feeder->feeder.counts();
  *out = chakra_et_counts{counts.waiting, counts.ready,     counts.taken,   counts.done,
                          counts.held,    counts.peak_held, counts.all_read};
}

int chakra_et_state(const chakra_et_feeder* feeder, uint64_t id) {
  return static_cast<int>(feeder->feeder.state(id));
}

int chakra_et_get_node(const chakra_et_feeder* feeder, uint64_t id, chakra_et_node* out) {
  NodeView node = feeder->feeder.node(id);
  if (node.valid()) fill(node, out);
  return node.valid();
}

size_t chakra_et_parents(const chakra_et_feeder* feeder, uint64_t id, chakra_et_edge* out,
                         size_t room) {
  return guard(size_t{0}, nullptr, [&] {
    std::vector<chakra_et::Edge> edges = feeder->feeder.parents(id);
    for (size_t i = 0; i < edges.size() && i < room; ++i) {
      out[i] = chakra_et_edge{edges[i].id, edges[i].kind, edges[i].inferred};
    }
    return edges.size();
  });
}

size_t chakra_et_children(const chakra_et_feeder* feeder, uint64_t id, uint64_t* out,
                          size_t room) {
  return guard(size_t{0}, nullptr, [&] {
    std::vector<uint64_t> ids = feeder->feeder.children(id);
    std::copy_n(ids.begin(), std::min(ids.size(), room), out);
    return ids.size();
  });
}

int chakra_et_attr_int(const chakra_et_node* node, const char* name, int64_t* out) {
  auto value = attribute(node, name).as_int();
  if (value) *out = *value;
  return value.has_value();
}

int chakra_et_attr_double(const chakra_et_node* node, const char* name, double* out) {
  auto value = attribute(node, name).as_double();
  if (value) *out = *value;
  return value.has_value();
}

int chakra_et_attr_string(const chakra_et_node* node, const char* name, const char** out,
                          size_t* size) {
  auto value = attribute(node, name).as_string();
  if (value) {
    *out = value->data();
    *size = value->size();
  }
  return value.has_value();
}

size_t chakra_et_blocked(const chakra_et_feeder* feeder, size_t limit, char* out, size_t room) {
  return guard(size_t{0}, nullptr, [&] {
    std::string text = feeder->feeder.blocked(limit).text();
    if (room != 0) std::snprintf(out, room, "%s", text.c_str());
    return text.size();
  });
}

}  // extern "C"
