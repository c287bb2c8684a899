# Fuzz targets of what reads files that nobody has to trust, and their seeds; see tools/fuzz.sh.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT RONDO_SANITIZE MATCHES "fuzzer-no-link")
  message(FATAL_ERROR "rondo: RONDO_BUILD_FUZZERS needs clang, for its libFuzzer, and fuzzer-no-link in RONDO_SANITIZE, for its counters; "
    "use --preset asan")
endif()

add_executable(rondo_fuzz_seeds tests/fuzz/make_seeds.cpp)
target_link_libraries(rondo_fuzz_seeds PRIVATE rondo_internal)
add_custom_target(rondo_fuzzers DEPENDS rondo_fuzz_seeds)

# Seeds of the simulator: kernels, as glslang makes modules of them.
file(GLOB kernels CONFIGURE_DEPENDS tests/fuzz/spirv/*.comp)
foreach(kernel IN LISTS kernels)
  get_filename_component(name ${kernel} NAME_WE)
  set(seed ${PROJECT_BINARY_DIR}/seeds/spirv/${name}.spv)
  add_custom_command(OUTPUT ${seed} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/seeds/spirv
    COMMAND ${RONDO_GLSLANG} --quiet -V --target-env vulkan1.2 -o ${seed} ${kernel} DEPENDS ${kernel} VERBATIM)
  list(APPEND seeds ${seed})
endforeach()
add_custom_target(rondo_fuzz_spirv_seeds DEPENDS ${seeds})
add_dependencies(rondo_fuzzers rondo_fuzz_spirv_seeds)

foreach(format graph_json gguf safetensors spirv)
  add_executable(${format}_fuzzer tests/fuzz/${format}_fuzzer.cpp)
  target_compile_options(${format}_fuzzer PRIVATE -fsanitize=fuzzer)
  target_link_options(${format}_fuzzer PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${format}_fuzzer PRIVATE rondo_internal)
  add_dependencies(rondo_fuzzers ${format}_fuzzer)
endforeach()
target_link_libraries(spirv_fuzzer PRIVATE rondo_simulator)
