// Writes the tiny random files of all families into a folder, for another implementation to read: FOLDER/NAME.SEED.gguf.
// usage: write_family_files FOLDER SEED
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/support/family_gguf.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: write_family_files FOLDER SEED\n"), 2;
  for (const rondo::tests::FamilyFile& family : rondo::tests::family_files()) {
    const std::string bytes = rondo::tests::build_family_file(family, static_cast<std::uint32_t>(std::atoi(argv[2])));
    std::ofstream file(std::string(argv[1]) + "/" + family.name + "." + argv[2] + ".gguf", std::ios::binary);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return std::fprintf(stderr, "write_family_files: %s can't be written\n", argv[1]), 1;
    std::printf("%s.%s\n", family.name, argv[2]);
  }
  return 0;
}
