# link_bench: links of each transport against what the memory allows.
find_package(benchmark REQUIRED)
add_executable(link_bench ${CMAKE_CURRENT_LIST_DIR}/link_bench.cc)
target_link_libraries(link_bench PRIVATE catenary_options cat_transports benchmark::benchmark)
