// All code is in the headers; this file takes the place of one of the same name.
#include "et_feeder.h"
