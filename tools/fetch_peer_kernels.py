#!/usr/bin/python3
"""Takes llama.cpp's Vulkan kernels out of its published library, for `rondo isa --against FOLDER`.

usage: fetch_peer_kernels.py FOLDER

The library is that of node-llama-cpp, from npm; nothing of it is built, installed or run. FOLDER gets modules.json and the SPIR-V
of those kernels that llama.cpp's host code would choose for a 4096 x 4096 matrix and for attention over heads of 128, with its
specialization constants and subgroup sizes, by chip; for prefill from RDNA3 on, on Xe2 and NVIDIA those that use matrix units with
VK_KHR_cooperative_matrix. Exit status 1, with the reason, where the package can't be had.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

PACKAGE = "@node-llama-cpp/linux-x64-vulkan@3.22.1"
LIBRARY = "package/bins/linux-x64-vulkan/libggml-vulkan.so"
SPIRV_MAGIC = 0x07230203

RDNA = ["navi21", "navi31", "gfx1201"]
INTEL = ["tgl", "dg2", "bmg"]
ADRENO = ["adreno660", "adreno740"]
NVIDIA = ["tu102", "ad102", "gh100", "gb202"]

OLD_TYPES = ["q4_0", "q4_1", "q5_0", "q5_1"]
K_TYPES = ["q2_K", "q3_K", "q4_K", "q5_K", "q6_K"]
TABLES = ["iq4_nl", "mxfp4"]


def vector(name, beside, chips, width, rows, subgroup, products, reduction="_subgroup_no_shmem"):
    """A matrix-vector kernel: constants are the workgroup's width, rows of a workgroup, columns. products: of an iteration, for one row."""
    inputs = "kRounds=0" if beside.startswith("dot") else "kInputVec4=2"
    return {"name": f"mul_mat_vec_{name}_f32{reduction}",
            "beside": f"linear {beside} kTokens=1 {inputs} kBias=0 kActivation=0", "chips": chips, "constants": [width, rows, 1],
            "subgroup_size": subgroup, "full_subgroups": True, "products": products * rows}


def products_of(type_name):
    """Weights of one row that an iteration of the largest loop multiplies, with activations in floats: four blocks' shares as it is unrolled, or one's."""
    return 16 if type_name == "f16" or type_name in K_TYPES else 32


def matrix(kind, name, beside, chips, constants, products):
    return {"name": name, "beside": f"linear {kind} {beside} kTileRows=4 {'kInputVec4=2 ' if kind == 'tiled' else ''}kBias=0 kActivation=0", "chips": chips, "constants": constants, "products": products}


def matrix_units(beside, chips, threads, subgroup, columns, shape, ggml_type=None):
    """A tile of 128 x 128 outputs by matrices of `shape`; each subgroup makes so many columns of it. Sums in f16, which host code prefers where a device
    has them."""
    rows = 128 * 128 * subgroup // (threads * columns)
    name = "f16" if ggml_type is None else "quant"
    return {"name": f"matmul_{name}_f32_f16acc_cm1", "beside": f"linear matrix {beside} kBias=0 kActivation=0", "chips": chips,
            "constants": [threads, 128, 128, 16 if ggml_type is None else 32, rows, columns, 2, *shape, subgroup, 1] + ([] if ggml_type is None else [ggml_type]),
            "subgroup_size": subgroup, "full_subgroups": True, "products": 128 * 128 * 32 // threads}


def attention(beside, chips, width, rows, row_split, subgroup, flags, full, products_by=""):
    """Flash attention over heads of 128 and keys in f16: blocks of `rows` queries and 32 keys."""
    return {"name": f"flash_attn_f32_f16{products_by}", "beside": f"attention {beside} kCacheType=1 kFeatures=0", "chips": chips, "subgroup_size": subgroup if full else 0, "full_subgroups": full,
            "constants": [width, rows, 32, 128, 128, 0, 8, row_split, subgroup if full else 0, 0, flags, 0, 1, 1, 2, 2], "products": 2 * rows * 32 * 128 // width}


def attention_by_matrix_units(chips, width, subgroup, flags):
    """The same by blocks of 16 queries and 64 keys."""
    return {"name": "flash_attn_f32_f16_cm1", "beside": "attention matrix kKeyWidth=128 kCacheType=1 kFeatures=0", "chips": chips, "subgroup_size": subgroup, "full_subgroups": True,
            "constants": [width, 16, 64, 128, 128, 0, 8, 4, subgroup, flags, 3, 0, 1, 1, 2, 2], "products": 2 * 16 * 64 * 128 // width}


MODULES = [
    # Decode on RDNA, and on NVIDIA with its own subgroups: integer dot products but for q8_0, floats and tables, of which ours has some by dot products too.
    *[vector(name, beside, chips, width, rows, subgroup, products)
      for chips, width, subgroup, table in ((RDNA, 64, 64, "dot"), (NVIDIA, 32, 32, "subgroup"))
      for name, beside, rows, products in (("f16_f32", "subgroup f16", 2, 16), ("q8_0_f32", "dot q8_0", 1, 32), ("iq4_nl_f32", f"{table} iq4_nl", 2, 32), ("mxfp4_f32", "subgroup mxfp4", 2, 32),
                                           *((f"{type}_q8_1", f"dot {type}", 1, 32) for type in OLD_TYPES), *((f"{type.lower()}_q8_1", f"dot {type}", 1, 64) for type in K_TYPES))],
    vector("f16_f32", "subgroup f16", INTEL, 64, 2, 16, 16, "_subgroup"),
    vector("q8_0_q8_1", "dot q8_0", INTEL[:2], 8, 2, 8, 32),
    vector("q8_0_q8_1", "dot q8_0", INTEL[2:], 16, 2, 16, 32),
    *[vector(f"{type}_f32", f"{'subgroup' if type in TABLES else 'dot'} {type}", INTEL, 64, 4, 16, 32, "_subgroup") for type in (*OLD_TYPES, *TABLES)],
    *[vector(f"{type.lower()}_q8_1", f"dot {type}", chips, lanes, 1, lanes, 64) for type in K_TYPES for chips, lanes in ((INTEL[:2], 8), (INTEL[2:], 16))],
    *[vector(f"{type.lower()}_f32", f"{'halves' if type == 'f16' else 'subgroup'} {type}", ADRENO, 128, 1 if type == "q8_0" else 2, 128, products_of(type)) for type in ("f16", "q8_0", *OLD_TYPES, *K_TYPES, *TABLES)],
    # Prefill without matrix units.
    matrix("tiled", "matmul_f16_f32_f16acc", "f16", ["navi21"] + ADRENO, [128, 64, 64, 16, 64, 32, 2, 4, 2, 1, 64, 1], 1024),
    matrix("dot_tiled", "matmul_q8_0_q8_1", "q8_0", ["navi21"], [128, 64, 64, 32, 64, 32, 2, 2, 2, 1, 64, 1], 4096),
    matrix("dot_tiled", "matmul_q4_0_q8_1", "q4_0", ["navi21"], [128, 64, 64, 32, 64, 32, 2, 2, 2, 1, 64, 1], 4096),
    matrix("tiled", "matmul_f16_f32_f16acc", "f16", INTEL[:2], [128, 64, 64, 16, 32, 32, 2, 4, 2, 1, 32, 1], 1024),
    matrix("dot_tiled", "matmul_q8_0_q8_1", "q8_0", INTEL[:1], [128, 64, 64, 32, 32, 32, 2, 2, 2, 1, 32, 1], 1024),
    matrix("dot_tiled", "matmul_q4_0_q8_1", "q4_0", INTEL[:1], [128, 64, 64, 32, 32, 32, 2, 2, 2, 1, 32, 1], 1024),
    # Prefill with matrix units.
    *[matrix_units(f"{type} kWidth={width} kRowMatrices={rows} kOutputMatrices=4", chips, threads, subgroup, columns, shape, ggml_type)
      for chips, width, rows, threads, subgroup, columns, shape in ((["navi31", "gfx1201"], 256, 2, 256, 64, 64, (16, 16, 16)), (NVIDIA, 128, 4, 128, 32, 64, (16, 16, 16)),
                                                                    (["bmg"], 256, 2, 512, 32, 32, (8, 16, 16)))
      for type, ggml_type in (("f16", None), ("q8_0", 8), ("q4_0", 2), ("q4_K", 12), ("q6_K", 14))],
    attention("half_subgroup kRows=4 kKeyWidth=128", RDNA, 256, 4, 4, 64, 2, True, "_dot2"),
    attention("subgroup kRows=4 kKeyWidth=128", NVIDIA, 128, 4, 4, 32, 2, True),
    attention("subgroup kRows=4 kKeyWidth=128", ADRENO, 256, 4, 4, 64, 2, True),
    attention("registers kKeyWidth=128", RDNA[:1], 256, 4, 1, 64, 3, True, "_dot2"),
    attention("registers kKeyWidth=128", ADRENO, 256, 8, 4, 64, 3, True),
    attention("subgroup kRows=2 kKeyWidth=128", INTEL, 128, 4, 4, 0, 2, False),
    attention("registers kKeyWidth=128", INTEL, 128, 8, 4, 0, 3, False),
    attention_by_matrix_units(NVIDIA, 128, 32, 1),
    attention_by_matrix_units(RDNA[1:], 256, 64, 0),
]


def fail(message):
    print(f"fetch_peer_kernels: error: {message}", file=sys.stderr)
    sys.exit(1)


def library():
    """The shared library's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            fail(f"npm can't be run: {error}")
        if done.returncode != 0:
            fail(f"npm can't get {PACKAGE}: {done.stderr.strip().splitlines()[-1:]}")
        archive = os.path.join(folder, done.stdout.strip().splitlines()[-1])
        subprocess.run(["tar", "xf", archive, "-C", folder, LIBRARY], check=True)
        with open(os.path.join(folder, LIBRARY), "rb") as file:
            return file.read()


def symbols(elf):
    """Name -> (offset in the file, size) of the objects in an ELF64's symbol table."""
    sections_at, = struct.unpack_from("<Q", elf, 0x28)
    section_size, n_sections = struct.unpack_from("<HH", elf, 0x3a)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, sections_at + i * section_size) for i in range(n_sections)]
    found = {}
    for _, kind, _, _, at, size, link, _, _, entry in sections:
        if kind not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
            continue
        names_at = sections[link][4]
        for i in range(size // entry):
            name_at, info, _, section, value, n_bytes = struct.unpack_from("<IBBHQQ", elf, at + i * entry)
            if info & 15 != 1 or not 0 < section < n_sections or n_bytes < 20:  # STT_OBJECT
                continue
            name = elf[names_at + name_at:elf.index(b"\0", names_at + name_at)].decode()
            found[name] = (value - sections[section][3] + sections[section][4], n_bytes)
    return found


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    folder = sys.argv[1]
    elf = library()
    kernels = {}
    for name, (at, size) in symbols(elf).items():
        if name.endswith("_data") and struct.unpack_from("<I", elf, at)[0] == SPIRV_MAGIC:
            kernels[name[:-5]] = elf[at:at + size]
    os.makedirs(folder, exist_ok=True)
    for module in MODULES:
        module["file"] = module["name"] + ".spv"
        if module["name"] not in kernels:
            fail(f"{PACKAGE} has no kernel {module['name']}; those of its kind are {sorted(k for k in kernels if k.startswith(re.match('[a-z]+_[a-z]+', module['name'])[0]))[:20]}")
        with open(os.path.join(folder, module["file"]), "wb") as file:
            file.write(kernels[module["name"]])
    with open(os.path.join(folder, "modules.json"), "w") as file:
        json.dump({"name": f"llama.cpp in {PACKAGE}", "n_bindings": 12, "push_bytes": 128, "modules": MODULES}, file, indent=1)
    print(f"{len(MODULES)} choices of {len({m['name'] for m in MODULES})} kernels in {folder}, of {len(kernels)} that there are")


main()
