# Read by cpack for each generator: unlike the Debian packages, a source archive has no place in a file system.
if(CPACK_GENERATOR STREQUAL "TXZ")
  set(CPACK_PACKAGING_INSTALL_PREFIX "/")
endif()
