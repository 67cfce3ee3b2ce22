// The chakra-et feeder under the names that simulators compile against: types of both worlds.
#ifndef CHAKRA_ET_FACADE_V3_COMMON_H
#define CHAKRA_ET_FACADE_V3_COMMON_H

#include <cstdint>
#include <stdexcept>
#include <string>

#include "chakra_et/feeder.hpp"
#include "et_def.pb.h"

namespace Chakra {
namespace FeederV3 {

using NodeId = uint64_t;
using ChakraNode = ChakraProtoMsg::Node;
using ChakraGlobalMetadata = ChakraProtoMsg::GlobalMetadata;

// This interface reports errors by exceptions.
inline void check(const chakra_et::Error& error) {
  if (error) throw std::runtime_error("chakra-et feeder: " + error.message());
}

}  // namespace FeederV3
}  // namespace Chakra

#endif  // CHAKRA_ET_FACADE_V3_COMMON_H
