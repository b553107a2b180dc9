# Read by cpack for each generator: a source archive has no place in a file system, unlike the Debian packages.
if(CPACK_GENERATOR STREQUAL "TXZ")
  set(CPACK_PACKAGING_INSTALL_PREFIX "/")
endif()
