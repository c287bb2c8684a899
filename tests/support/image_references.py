"""Pictures resized by Pillow, cropped and made numbers of as transformers' image processors do, for the tests of models/image.h.

usage: image_references.py OUT.safetensors

Sources are no part of the file: bytes of a generator that the tests have too (see `picture`). Tensors:
  resize/FILTER/W x H/W x H (H, W, 3)    Image.resize, FILTER by its number
  crop/W x H/W x H (H, W, 3)             the middle
  grey/W x H (H, W, 1)                   convert("L")
  numbers/NAME (C, 12, 12)               all steps of the processor whose preprocessor_config.json is NAME in __metadata__; the
                                         source's size is the name's end
"""
import json
import math
import sys

import numpy as np
from PIL import Image

from tensor_files import Tensor, write_safetensors

RESIZES = [((1, 1), (5, 3)), ((1, 7), (5, 3)), ((7, 1), (3, 5)), ((23, 17), (8, 8)), ((5, 4), (13, 11)), ((31, 9), (31, 4)), ((9, 14), (4, 14)), ((6, 6), (6, 6)),
           ((64, 48), (3, 2)), ((2, 3), (20, 1))]
CROPS = [((9, 8), (4, 3)), ((8, 9), (5, 4)), ((3, 4), (8, 7)), ((4, 9), (7, 4)), ((9, 3), (4, 8)), ((1, 1), (1, 1))]
HALVES = [0.5, 0.5, 0.5]
# What processors do where their file says nothing.
USUAL = {
    "ViT": {"size": {"height": 224, "width": 224}, "resample": 2, "do_center_crop": False, "image_mean": HALVES, "image_std": HALVES},
    "DeiT": {"size": {"height": 256, "width": 256}, "resample": 3, "do_center_crop": True, "image_mean": HALVES, "image_std": HALVES},
    "CLIP": {"size": {"shortest_edge": 224}, "resample": 3, "do_center_crop": True, "image_mean": [0.48145466, 0.4578275, 0.40821073],
             "image_std": [0.26862954, 0.26130258, 0.27577711]},
}
# (name, size of the source, channels, preprocessor_config.json); the model takes 12 x 12.
PROCESSORS = [
    ("vit", (19, 26), 3, {"image_processor_type": "ViTImageProcessor", "size": {"height": 12, "width": 12}}),
    ("old", (30, 7), 3, {"feature_extractor_type": "ViTFeatureExtractor", "size": 12, "resample": 1, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}),
    ("deit", (40, 33), 3, {"image_processor_type": "DeiTImageProcessor", "size": [16, 15], "crop_size": {"height": 12, "width": 12}, "resample": 3}),
    ("clip", (50, 29), 3, {"image_processor_type": "CLIPImageProcessorFast", "size": 13, "crop_size": 12}),
    ("tall", (11, 37), 3, {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 9}, "crop_size": 12, "do_normalize": False, "rescale_factor": 0.00390625}),
    ("bytes", (10, 15), 3, {"do_resize": False, "do_center_crop": True, "crop_size": 12, "do_rescale": False, "image_mean": 100, "image_std": [1.5, 2, 50.25]}),
    ("luma", (21, 18), 1, {"image_processor_type": "ViTImageProcessor", "size": 12, "image_mean": [0.1307], "image_std": [0.3081]}),
]


def picture(width: int, height: int) -> Image.Image:
    """Bytes of a linear congruential generator, whose seed is the size."""
    state, values = 1000 * width + height, []
    for _ in range(3 * width * height):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append(state >> 24)
    return Image.fromarray(np.array(values, np.uint8).reshape(height, width, 3))


def sized(size, keeps_shape: bool) -> dict[str, int]:
    if isinstance(size, int):
        return {"shortest_edge": size} if keeps_shape else {"height": size, "width": size}
    return {"height": size[0], "width": size[1]} if isinstance(size, list) else size


def center_crop(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Of (H, W, C); zeros are put around what is too small, one more before it than behind where their number is odd."""
    above, before = (max(0, math.ceil((to - n) / 2)) for n, to in zip(image.shape, (height, width)))
    padded = np.pad(image, ((above, max(0, height - image.shape[0] - above)), (before, max(0, width - image.shape[1] - before)), (0, 0)))
    top, left = (padded.shape[0] - height) // 2, (padded.shape[1] - width) // 2
    return padded[top:top + height, left:left + width]


def numbers(image: Image.Image, channels: int, config: dict) -> np.ndarray:
    kind = (config.get("image_processor_type") or config.get("feature_extractor_type") or "ViT").split("Image")[0].split("Feature")[0]
    config = {"do_resize": True, "crop_size": 224, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True} | USUAL[kind] | config
    image = image.convert("L") if channels == 1 else image
    if config["do_resize"]:
        size = sized(config["size"], kind == "CLIP")
        if "shortest_edge" in size:
            short, long = sorted(image.size)
            edges = size["shortest_edge"], int(size["shortest_edge"] * long / short)
            size = {"width": edges[0], "height": edges[1]} if image.size[0] <= image.size[1] else {"width": edges[1], "height": edges[0]}
        image = image.resize((size["width"], size["height"]), resample=config["resample"])
    values = np.asarray(image).reshape(image.size[1], image.size[0], channels)
    if config["do_center_crop"]:
        values = center_crop(values, **sized(config["crop_size"], False))
    values = (values.astype(np.float64) * config["rescale_factor"]).astype(np.float32) if config["do_rescale"] else values.astype(np.float32)
    if config["do_normalize"]:
        values = (values - np.array(config["image_mean"], np.float32)) / np.array(config["image_std"], np.float32)
    assert values.shape == (12, 12, channels) and values.dtype == np.float32
    return values.transpose(2, 0, 1)


def name_of(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def main(out: str) -> None:
    tensors, metadata = {}, {}
    for filter_number in range(6):
        for source, size in RESIZES:
            tensors[f"resize/{filter_number}/{name_of(source)}/{name_of(size)}"] = Tensor("U8", np.asarray(picture(*source).resize(size, resample=filter_number)))
    for source, (width, height) in CROPS:
        tensors[f"crop/{name_of(source)}/{width}x{height}"] = Tensor("U8", center_crop(np.asarray(picture(*source)), height, width))
    tensors["grey/13x7"] = Tensor("U8", np.asarray(picture(13, 7).convert("L"))[..., None])
    for name, source, channels, config in PROCESSORS:
        tensors[f"numbers/{name}/{name_of(source)}"] = Tensor("F32", numbers(picture(*source), channels, config))
        metadata[name] = json.dumps(config)
    # Four bytes each first: safetensors wants them aligned.
    write_safetensors(out, dict(sorted(tensors.items(), key=lambda entry: entry[1].dtype != "F32")), metadata)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
