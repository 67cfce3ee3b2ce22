// Any bytes, through every door of the C++ feeder: no crash, no hang, no endless memory.
// With libFuzzer: clang++ -fsanitize=fuzzer,address,undefined. Without: a main() that takes files.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "chakra_et/feeder_set.hpp"

using namespace chakra_et;

static void look_at(const NodeView& node, uint64_t& sum) {
  sum += node.id() + node.type_number() + node.name().size() + node.inputs_values().size();
  sum += static_cast<uint64_t>(node.start_ns()) + static_cast<uint64_t>(node.duration_ns());
  sum += node.is_cpu_op().value_or(false) + node.comm_size().value_or(0) + node.has_start();
  node.each_attr([&](const Attr& attr) {
    sum += attr.name().size() + static_cast<unsigned>(attr.kind()) + attr.as_uint().value_or(0);
    sum += attr.as_string().value_or("").size() + attr.as_double().has_value();
    if (auto list = attr.as_ints()) sum += list->size();
    if (auto list = attr.as_doubles()) sum += list->size();
    if (auto list = attr.as_strings()) sum += list->size();
  });
}

static void drive(Result<Feeder>& opened, uint64_t& sum) {
  if (!opened) {
    sum += opened.error().message().size();
    return;
  }
  NodeView node;
  std::vector<uint64_t> taken;
  for (unsigned step = 0; step < 4096; ++step) {
    if (opened->next(node) != Next::node) {
      if (taken.empty()) break;
      sum += opened->done(taken.back()).code == Code::ok;
      taken.pop_back();
      continue;
    }
    look_at(node, sum);
    uint64_t id = node.id();
    sum += opened->parents(id).size() + opened->children(id).size();
    if (step % 3 == 0) {
      sum += opened->push_back(id).code == Code::ok && opened->take(id).code == Code::ok;
    }
    if (step % 2 == 0) {
      sum += opened->done(id).code == Code::ok;
    } else {
      taken.push_back(id);
    }
    sum += opened->take(sum).message().size() + opened->done(sum % 7).message().size();
  }
  sum += opened->blocked(5).text().size() + opened->metadata().version().size();
  sum += opened->reset().code == Code::ok;
  sum += opened->ready().size() + opened->memory();
}

// Each rank of a packed file, and one again, as the class that was read last is kept.
static void open_packed(const uint8_t* data, size_t size, uint64_t& sum) {
#ifdef CHAKRA_ET_WITH_ZSTD
  Result<pack::Pack> packed = pack::Pack::from_blob(Blob::borrow(data, size), "run.pack");
  if (!packed) {
    sum += packed.error().message().size();
    return;
  }
  std::vector<pack::Entry> entries = packed->entries();
  if (!entries.empty()) entries.push_back(entries.front());
  for (const pack::Entry& entry : entries) {
    Result<Blob> rank = packed->read(entry, 1 << 24);
    sum += rank ? rank->span().size() : rank.error().message().size();
  }
#else
  sum += pack::is_zip(data, size);
#endif
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  uint64_t sum = 0;
  uint8_t choice = *data++;
  --size;
  Options options;
  options.missing_parent = static_cast<Fault>(choice % 3);
  options.self_edge = static_cast<Fault>(choice / 3 % 3);
  options.order = (choice & 16) != 0 ? Order::start : Order::id;
  options.skip_metadata = (choice & 32) != 0;
  if ((choice & 64) != 0) options.gate = edge_data | edge_stream;
  options.max_record = 1 << 20;
  options.repeat = (choice & 128) != 0 ? 2 : 1;
  Result<Feeder> whole = Feeder::from_bytes(data, size, options);
  drive(whole, sum);
  options.window = 1 + choice % 5;
  Result<Feeder> window = Feeder::from_bytes(data, size, options);
  drive(window, sum);
  if (choice == 0) open_packed(data, size, sum);
  FeederSet set;
  options.window = 0;
  options.repeat = 1;
  for (uint64_t rank = 0; rank < 2; ++rank) {
    Result<Feeder> one = Feeder::from_bytes(data, size, options);
    if (one) set.add(rank, std::move(one.value()));
  }
  set.read_groups("/nowhere").message();
  auto text = reinterpret_cast<const char*>(data);
  for (auto& group : parse_told_groups(std::string_view(text, size))) sum += group.second.size();
  if (Result<Groups> groups = parse_groups(wire::Span{data, data + size})) {
    for (auto& group : *groups) set.set_group(group.first, group.second);
  } else {
    sum += groups.error().message().size();
  }
  Collective collective;
  bool found = false;
  sum += set.next_collective_ready(collective, found).message().size();
  sum += set.blocked(3).size();
  volatile uint64_t keep = sum;
  (void)keep;
  return 0;
}

#ifndef CHAKRA_ET_LIBFUZZER
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::FILE* file = std::fopen(argv[i], "rb");
    if (file == nullptr) return 2;
    std::string bytes;
    char piece[4096];
    while (size_t got = std::fread(piece, 1, sizeof piece, file)) bytes.append(piece, got);
    std::fclose(file);
    for (int choice = 0; choice < 256; choice += 5) {
      std::string input = static_cast<char>(choice) + bytes;
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    }
  }
  std::printf("%d inputs\n", argc - 1);
  return 0;
}
#endif
