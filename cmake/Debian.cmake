# ninja package: ptxrewrite_VERSION_ARCH.deb and libptxrewrite-dev_VERSION_ARCH.deb; ninja package_source: the source
# archive. Checksums are beside them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ptxrewrite)
set(CPACK_PACKAGE_CONTACT "ptxrewrite developers <ptxrewrite@localhost>")
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/CPackGenerator.cmake)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "PTX-to-PTX rewriting toolkit: rewrites, emulates, scores and checks CUDA kernels")
set(CPACK_COMPONENT_DEV_DESCRIPTION "headers and static libraries of ptxrewrite, for passes and loaders of one's own")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ptxrewrite)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# Loaded when they are first needed, so that no dependency is found: Z3 by `prove`, LLVM by the emulator.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libz3-4, libllvm19")
# The CUDA libraries of `exec` find each other through their own folder.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/cuda/lib)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libptxrewrite-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libfmt-dev, libspdlog-dev")

set(CPACK_SOURCE_GENERATOR TXZ)
set(CPACK_SOURCE_IGNORE_FILES "/build/" "/[.]git/" "/[.]git$" "/__pycache__/" "/[.]cache/")
include(CPack)
