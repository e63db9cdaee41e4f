# `cmake --install build/release --prefix P`: the binary, the library and find_package(latchkey).
include(CMakePackageConfigHelpers)
install(TARGETS latchkey_asio latchkey_base latchkey_model latchkey_keying latchkey_store latchkey_store_sqlite latchkey_engine
  latchkey_embedded latchkey_sqlite3 EXPORT latchkeyTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT latchkeyTargets NAMESPACE latchkey:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/latchkey)
install(DIRECTORY include/latchkey DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS latchkey_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/latchkeyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/latchkeyConfig.cmake ${PROJECT_BINARY_DIR}/latchkeyConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/latchkey)
