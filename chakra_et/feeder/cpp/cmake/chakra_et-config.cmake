# find_package(chakra_et CONFIG) gives
#   chakra_et::feeder    the C++ headers
#   chakra_et::feeder_c  the C interface, compiled when it is first linked
# Compressed traces need CHAKRA_ET_WITH_ZLIB and CHAKRA_ET_WITH_ZSTD set to ON beforehand; packed
# files (chakra pack) need the latter, those of chakra generate --pack both.
get_filename_component(_chakra_et_cpp "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

if(NOT TARGET chakra_et::feeder)
  add_library(chakra_et::feeder INTERFACE IMPORTED)
  set_target_properties(chakra_et::feeder PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_chakra_et_cpp}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_17)
  if(CHAKRA_ET_WITH_ZLIB)
    find_package(ZLIB REQUIRED)
    set_property(TARGET chakra_et::feeder APPEND PROPERTY
      INTERFACE_COMPILE_DEFINITIONS CHAKRA_ET_WITH_ZLIB)
    set_property(TARGET chakra_et::feeder APPEND PROPERTY INTERFACE_LINK_LIBRARIES ZLIB::ZLIB)
  endif()
  if(CHAKRA_ET_WITH_ZSTD)
    find_library(_chakra_et_zstd zstd REQUIRED)
    set_property(TARGET chakra_et::feeder APPEND PROPERTY
      INTERFACE_COMPILE_DEFINITIONS CHAKRA_ET_WITH_ZSTD)
    set_property(TARGET chakra_et::feeder APPEND PROPERTY
      INTERFACE_LINK_LIBRARIES "${_chakra_et_zstd}")
  endif()
endif()

get_property(_chakra_et_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT TARGET chakra_et_feeder_c AND "CXX" IN_LIST _chakra_et_languages)
  add_library(chakra_et_feeder_c EXCLUDE_FROM_ALL "${_chakra_et_cpp}/src/feeder_c.cpp")
  set_target_properties(chakra_et_feeder_c PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(chakra_et_feeder_c PUBLIC chakra_et::feeder)
  add_library(chakra_et::feeder_c ALIAS chakra_et_feeder_c)
endif()
