// A node of a trace, read from its bytes when asked. The view does not own the bytes.
#ifndef CHAKRA_ET_NODE_HPP
#define CHAKRA_ET_NODE_HPP

#include "attr.hpp"

namespace chakra_et {

inline uint32_t edge_kind_of(std::string_view name) {
  constexpr size_t count = sizeof(edge_kind_names) / sizeof(edge_kind_names[0]);
  for (unsigned i = 0; i < count; ++i) {
    if (edge_kind_names[i] == name) return 1u << i;
  }
  return 0;
}

struct Edge {
  uint64_t id = 0;  // the other node
  uint32_t kind = edge_data;
  bool inferred = false;
};

class NodeView {
 public:
  NodeView() = default;

  // Reads the top level of a Node; attributes are looked at when asked for.
  explicit NodeView(wire::Span message) : message_(message) {
    const wire::Byte* p = message.begin;
    wire::Field field;
    wire::Step step;
    const wire::Byte* at = p;  // where the field starts
    for (; (step = wire::next_field(p, message.end, field)) == wire::Step::field; at = p) {
      if (field.type == wire::varint) {
        switch (field.number) {
          case field::id: id_ = field.value; break;
          case field::type: type_ = static_cast<uint32_t>(field.value); break;
          case field::start_time_micros: start_us_ = field.value; break;
          case field::duration_micros: duration_us_ = field.value; has_duration_ = true; break;
          default: break;
        }
      } else if (field.type == wire::bytes) {
        if (field.number == field::name) name_ = field.data;
        if (field.number == field::attr && attrs_.begin == nullptr) {
          attrs_ = wire::Span{at, message.end};
        }
      }
    }
    malformed_ = step == wire::Step::bad;
  }

  bool valid() const { return message_.begin != nullptr; }
  bool malformed() const { return malformed_; }
  wire::Span message() const { return message_; }

  uint64_t id() const { return id_; }
  std::string_view name() const { return name_.text(); }
  uint32_t type_number() const { return type_; }
  NodeType type() const { return static_cast<NodeType>(type_); }

  // Microseconds as written in the schema's own fields.
  uint64_t start_micros() const { return start_us_; }
  uint64_t duration_micros() const { return duration_us_; }

  // Exact nanoseconds where the trace has them, else the microseconds times 1000.
  int64_t start_ns() const { return nanoseconds("start_time_ns", start_us_); }
  int64_t duration_ns() const { return nanoseconds("duration_ns", duration_us_); }
  bool has_start() const {
    int64_t exact = 0;
    return start_us_ != 0 || is_exact("start_time_ns", start_us_, exact);
  }
  bool has_duration() const {
    return has_duration_ || attr("duration_ns").kind() != Kind::none;
  }

  // An attribute by name; kind() is none when it is absent.
  Attr attr(std::string_view name) const {
    const wire::Byte* p = attrs_.begin;
    wire::Field field;
    while (p != nullptr && wire::next_field(p, attrs_.end, field) == wire::Step::field) {
      if (field.number == field::attr && field.type == wire::bytes && Attr::is_named(field.data, name)) {
        return Attr(field.data);
      }
    }
    return Attr();
  }

  template <class Visit>
  void each_attr(Visit visit) const {
    const wire::Byte* p = attrs_.begin;
    wire::Field field;
    while (p != nullptr && wire::next_field(p, attrs_.end, field) == wire::Step::field) {
      if (field.number == field::attr && field.type == wire::bytes) visit(Attr(field.data));
    }
  }

  // The attributes that simulators act on. An empty optional: not in the trace.
  std::optional<bool> is_cpu_op() const { return attr("is_cpu_op").as_bool(); }
  std::optional<uint64_t> num_ops() const { return attr("num_ops").as_uint(); }
  std::optional<uint64_t> tensor_size() const { return attr("tensor_size").as_uint(); }
  std::optional<uint64_t> comm_type() const { return attr("comm_type").as_uint(); }
  std::optional<uint64_t> comm_size() const { return attr("comm_size").as_uint(); }
  std::optional<int64_t> comm_priority() const { return attr("comm_priority").as_int(); }
  std::optional<int64_t> comm_src() const { return attr("comm_src").as_int(); }
  std::optional<int64_t> comm_dst() const { return attr("comm_dst").as_int(); }
  std::optional<int64_t> comm_tag() const { return attr("comm_tag").as_int(); }
  std::optional<std::string_view> pg_name() const { return attr("pg_name").as_string(); }
  std::optional<std::vector<int64_t>> involved_dim() const { return attr("involved_dim").as_ints(); }
  std::optional<int64_t> stream() const { return attr("stream").as_int(); }

  // "values", "shapes" or "types" of the inputs (8) or outputs (9), as text.
  std::string_view inputs_values() const { return io_text(8, 1); }
  std::string_view inputs_shapes() const { return io_text(8, 2); }
  std::string_view inputs_types() const { return io_text(8, 3); }
  std::string_view outputs_values() const { return io_text(9, 1); }
  std::string_view outputs_shapes() const { return io_text(9, 2); }
  std::string_view outputs_types() const { return io_text(9, 3); }

  // The nodes that this one waits for, as listed, with the kind of each edge.
  std::vector<Edge> parents() const {
    std::vector<Edge> out;
    each_dep([&](uint64_t parent, bool control) {
      out.push_back(Edge{parent, control ? edge_call : edge_data, false});
      return true;
    });
    if (auto text = attr("edge_kinds").as_string()) set_kinds(*text, out);
    return out;
  }

  // visit(parent id, is it a control dependency) -> go on?; false when the bytes are malformed.
  template <class Visit>
  bool each_dep(Visit visit) const {
    const wire::Byte* p = message_.begin;
    wire::Field field;
    wire::Step step;
    while ((step = wire::next_field(p, message_.end, field)) == wire::Step::field) {
      if (field.number != field::ctrl_deps && field.number != field::data_deps) continue;
      bool control = field.number == field::ctrl_deps;
      if (field.type == wire::varint) {
        if (!visit(field.value, control)) return true;
      } else if (field.type == wire::bytes) {
        for (const wire::Byte* q = field.data.begin; q != field.data.end;) {
          uint64_t parent = 0;
          if (!wire::read_varint(q, field.data.end, parent)) return false;
          if (!visit(parent, control)) return true;
        }
      }
    }
    return step == wire::Step::end;
  }

 private:
  // Reads "program,launch?" into the data edges, which follow in that order; leaves them as plain
  // data edges when the text is not about that many or has other words.
  static void set_kinds(std::string_view text, std::vector<Edge>& edges) {
    std::vector<Edge> typed = edges;
    bool more = true;
    for (Edge& edge : typed) {
      if (edge.kind == edge_call) continue;
      if (!more) return;
      size_t comma = text.find(',');
      std::string_view word = text.substr(0, comma);
      more = comma != std::string_view::npos;
      text = more ? text.substr(comma + 1) : std::string_view();
      edge.inferred = !word.empty() && word.back() == '?';
      if (edge.inferred) word.remove_suffix(1);
      edge.kind = edge_kind_of(word);
      if (edge.kind == 0 || edge.kind == edge_call) return;
    }
    if (!more) edges.swap(typed);
  }

  // The exact time where the attribute agrees with the microseconds, which are it rounded.
  int64_t nanoseconds(std::string_view name, uint64_t micros) const {
    uint64_t limit = static_cast<uint64_t>(INT64_MAX) / 1000;
    int64_t rounded = micros > limit ? INT64_MAX : static_cast<int64_t>(micros * 1000);
    int64_t exact = 0;
    return is_exact(name, micros, exact) ? exact : rounded;
  }

  bool is_exact(std::string_view name, uint64_t micros, int64_t& exact) const {
    if (attrs_.begin == nullptr || micros > static_cast<uint64_t>(INT64_MAX) / 1000 - 1) return false;
    Attr found = attr(name);
    if (found.kind() != Kind::int64) return false;
    exact = *found.as_int();
    auto rounded = static_cast<int64_t>(micros * 1000);
    return exact >= rounded - 500 && exact <= rounded + 500;
  }

  std::string_view io_text(uint32_t number, uint32_t part) const {
    std::string_view text;
    const wire::Byte* p = message_.begin;
    wire::Field outer, inner;
    while (wire::next_field(p, message_.end, outer) == wire::Step::field) {
      if (outer.number != number || outer.type != wire::bytes) continue;
      const wire::Byte* q = outer.data.begin;
      while (wire::next_field(q, outer.data.end, inner) == wire::Step::field) {
        if (inner.number == part && inner.type == wire::bytes) text = inner.data.text();
      }
    }
    return text;
  }

  wire::Span message_, name_, attrs_;
  uint64_t id_ = 0;
  uint64_t start_us_ = 0, duration_us_ = 0;
  uint32_t type_ = 0;
  bool has_duration_ = false, malformed_ = false;
};

}  // namespace chakra_et

#endif  // CHAKRA_ET_NODE_HPP
