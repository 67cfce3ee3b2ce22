// Replays a trace from JavaScript, over the pipes of `chakra feed PATH --stdio`. No packages needed:
// the few messages of schema/feeder.proto that it uses are written and read here.
//
//   node client.mjs trace.0.et

import { spawn } from "node:child_process";

function varint(value) {
  const bytes = [];
  for (let n = BigInt(value); ; n >>= 7n) {
    const low = Number(n & 0x7fn);
    if (n < 0x80n) return Buffer.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}

// Calls visit(field number, value) for each field: a BigInt, or the bytes of a longer one.
function fields(data, visit) {
  let at = 0;
  const number = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = data[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < data.length) {
    const tag = number();
    if ((tag & 7n) === 0n) visit(Number(tag >> 3n), number());
    else if ((tag & 7n) === 2n) {
      const size = Number(number());
      visit(Number(tag >> 3n), data.subarray(at, at + size));
      at += size;
    } else at += (tag & 7n) === 1n ? 8 : 4;
  }
}

function numbers(data) {
  const found = [];
  let value = 0n;
  let shift = 0n;
  for (const byte of data) {
    value |= BigInt(byte & 0x7f) << shift;
    shift += 7n;
    if (byte < 0x80) {
      found.push(value);
      value = shift = 0n;
    }
  }
  return found;
}

// Request: field 5 is what is done, field 8 how many nodes to take.
function request(done, next) {
  const ids = Buffer.concat(done.map(varint));
  const parts = [Buffer.from([5 << 3 | 2]), varint(ids.length), ids];
  const body = Buffer.concat([...(done.length ? parts : []), Buffer.from([8 << 3]), varint(next)]);
  return Buffer.concat([varint(body.length), body]);
}

// Reply: 3 error, 4 nodes (1 ids, 2 messages), 5 why there are no more.
function reply(data) {
  const found = { ids: [], messages: [], next: 0n, error: "" };
  fields(data, (field, value) => {
    if (field === 3) fields(value, (f, v) => f === 2 && (found.error = v.toString()));
    if (field === 5) found.next = value;
    if (field === 4) {
      fields(value, (f, v) => {
        if (f === 1) found.ids.push(...numbers(v));
        if (f === 2) found.messages.push(v);
      });
    }
  });
  return found;
}

async function* frames(stream) {
  let data = Buffer.alloc(0);
  for await (const piece of stream) {
    data = Buffer.concat([data, piece]);
    for (;;) {
      let at = 0;
      while (at < data.length && data[at] >= 0x80) ++at;
      if (at >= data.length) break;
      const size = Number(numbers(data.subarray(0, at + 1))[0]);
      if (data.length < at + 1 + size) break;
      yield data.subarray(at + 1, at + 1 + size);
      data = data.subarray(at + 1 + size);
    }
  }
}

const command = (process.env.CHAKRA ?? "chakra").split(" ");
const feeder = spawn(command[0], [...command.slice(1), "feed", process.argv[2], "--stdio"], {
  stdio: ["pipe", "pipe", "inherit"],
});
let micros = 0n;
let count = 0;
feeder.stdin.write(request([], 1024));
for await (const data of frames(feeder.stdout)) {
  const { ids, messages, next, error } = reply(data);
  if (error) throw new Error(error);
  for (const message of messages) {
    fields(message, (field, value) => field === 7 && (micros += value)); // duration_micros
    ++count;
  }
  if (ids.length === 0) {
    console.log(`${count} nodes, ${micros} us`);
    process.exitCode = next === 2n ? 0 : 1; // 2: finished
    break;
  }
  feeder.stdin.write(request(ids, 1024));
}
feeder.stdin.end();
