# Fuzz targets of what reads files that nobody has to trust, and their seeds; see tools/fuzz.sh.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "rondo: RONDO_BUILD_FUZZERS needs clang for its libFuzzer, but the compiler is "
    "${CMAKE_CXX_COMPILER_ID}; use --preset fuzz or -DCMAKE_CXX_COMPILER=clang++")
endif()

# The library again, with coverage counters and without what needs Vulkan.
file(GLOB RONDO_FUZZED_SOURCES CONFIGURE_DEPENDS graph/*.cpp graph/ops/*.cpp models/arch/*.cpp models/formats/*.cpp models/tokenizers/*.cpp)
add_library(rondo_fuzzed STATIC ${RONDO_FUZZED_SOURCES} models/byte_source.cpp models/json.cpp models/nearest.cpp models/network.cpp
  models/step_builder.cpp models/utf8.cpp models/weights.cpp runtime/fmt.cpp runtime/status.cpp ${RONDO_UNICODE_CLASS_TABLE})
target_compile_options(rondo_fuzzed PRIVATE -fno-exceptions -fno-rtti -fsanitize=fuzzer-no-link)
target_compile_definitions(rondo_fuzzed PRIVATE JSON_NOEXCEPTION=1)
target_link_libraries(rondo_fuzzed PUBLIC rondo_internal_headers)

add_executable(rondo_fuzz_seeds tests/fuzz/make_seeds.cpp)
target_link_libraries(rondo_fuzz_seeds PRIVATE rondo_fuzzed)
add_custom_target(rondo_fuzzers DEPENDS rondo_fuzz_seeds)
foreach(format graph_json gguf safetensors)
  add_executable(${format}_fuzzer tests/fuzz/${format}_fuzzer.cpp)
  target_compile_options(${format}_fuzzer PRIVATE -fsanitize=fuzzer)
  target_link_options(${format}_fuzzer PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${format}_fuzzer PRIVATE rondo_fuzzed)
  add_dependencies(rondo_fuzzers ${format}_fuzzer)
endforeach()
