# One OBJECT library a layer, named qn_<layer>; flags belong to files, never to a build.
function(qn_layer name)
  add_library(qn_${name} OBJECT ${ARGN})
  target_link_libraries(qn_${name} PRIVATE qn_flags)
  set_property(GLOBAL APPEND PROPERTY QN_LAYERS qn_${name})
endfunction()

# qn_isa(<layer> "<flags>" files...): files of that layer that need an instruction set.
function(qn_isa layer flags)
  target_sources(qn_${layer} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}")
endfunction()

# qn_test(<name> files...): a test binary over all layers' objects (hidden symbols included).
function(qn_test name)
  add_executable(test_${name} ${ARGN})
  target_link_libraries(test_${name} PRIVATE qn_objects qn_flags qt)
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} TIMEOUT 1200)
endfunction()
