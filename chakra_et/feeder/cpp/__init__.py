"""The C++ feeder: headers, the C interface, CMake files, and drop-ins for other feeders."""
