// The attribute of a node as libprotobuf's message.
#ifndef CHAKRA_ET_FACADE_V3_NODE_ATTR_H
#define CHAKRA_ET_FACADE_V3_NODE_ATTR_H

#include "common.h"

namespace Chakra {
namespace FeederV3 {

using ChakraAttr = ChakraProtoMsg::AttributeProto;

}  // namespace FeederV3
}  // namespace Chakra

#endif  // CHAKRA_ET_FACADE_V3_NODE_ATTR_H
