"""A simulator of one rank: a host, a device and a network, each doing one thing at a time.

    python simulate.py trace.0.et [BYTES_PER_NS]

Nodes replay their durations; communication takes its bytes over the bandwidth, if that is given.
"""

import heapq
import sys

from chakra_et.definitions import NodeType
from chakra_et.feeder import Feeder, Next

COMMUNICATION = {NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV}


def resource_of(node):
    """What a node occupies."""
    if node.type in COMMUNICATION:
        return "network"
    return "host" if node.is_cpu_op else "device"


def duration_of(node, bytes_per_ns):
    """How long it takes, in ns."""
    if node.type in COMMUNICATION and bytes_per_ns and node.comm_size:
        return round(node.comm_size / bytes_per_ns)
    return node.duration_ns


def simulate(feeder, bytes_per_ns=0.0):
    """Run a trace to its end; the time when it ends, and how long each resource was busy."""
    now, running, waiting = 0, [], {"host": [], "device": [], "network": []}
    idle, busy = set(waiting), dict.fromkeys(waiting, 0)
    while True:
        answer, node = feeder.next()
        while answer is Next.NODE:
            waiting[resource_of(node)].append(node)
            answer, node = feeder.next()
        for resource in [r for r in idle if waiting[r]]:
            node = waiting[resource].pop(0)
            took = duration_of(node, bytes_per_ns)
            idle.remove(resource)
            busy[resource] += took
            heapq.heappush(running, (now + took, node.id, resource))
        if not running:
            if answer is Next.BLOCKED:
                raise SystemExit(str(feeder.blocked()))
            return now, busy
        now, node_id, resource = heapq.heappop(running)
        idle.add(resource)
        feeder.done(node_id)


if __name__ == "__main__":
    end, busy = simulate(Feeder(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
    print(f"{end} ns; busy: " + ", ".join(f"{name} {time} ns" for name, time in busy.items()))
