# What others get: the program, both libraries, the public headers, a pkg-config file. Its paths are
# relative to itself, so `cmake --install --prefix` may put the whole anywhere.
include(GNUInstallDirs)
file(RELATIVE_PATH QN_TO_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(cmake/quern.pc.in quern.pc @ONLY)
install(TARGETS quern quern_shared quern_static)
install(DIRECTORY include/quern TYPE INCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/quern.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_BINARY_DIR}/quern.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
