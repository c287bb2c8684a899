#!/usr/bin/python3
"""Trains the bundled ViT (Dosovitskiy et al. 2021) on scikit-learn's handwritten digits, 8 x 8 pixels each, of which every fifth
is held out.

usage: digits_vit.py OUT_DIR [--minutes M]      trains for M minutes, writes the folder
       digits_vit.py OUT_DIR --score            accuracy on the held-out images with the folder
       digits_vit.py --images DIR               writes the held-out images as DIR/0014-4.png: their number in the data, and their digit
Needs Debian's python3-torch, libopenblas0, python3-sklearn, and for --images python3-pil.
"""
import argparse
import json
import math
import pathlib
import tempfile
import time

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

import folders

SIZE, PATCH, CHANNELS = 8, 2, 3
WIDTH, HEADS, FFN_WIDTH, LAYERS = 64, 4, 128, 4
CLASSES = 10
EPSILON = 1e-12
MEAN, DEVIATION = 0.5, 0.5
DROPOUT = 0.1
BATCH = 96
RATE, WARM_UP = 2e-3, 300
REPORT_MINUTES = 1


# The network, its parameters named as transformers names them

class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        def heads(y):
            return y.view(y.shape[0], -1, HEADS, WIDTH // HEADS).transpose(1, 2)
        scores = heads(self.query(x)) @ heads(self.key(x)).transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        return (scores.softmax(-1) @ heads(self.value(x))).transpose(1, 2).reshape(x.shape)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(WIDTH, EPSILON), nn.LayerNorm(WIDTH, EPSILON)
        self.attention = folders.block(attention=SelfAttention(), output=folders.block(dense=nn.Linear(WIDTH, WIDTH)))
        self.intermediate = folders.block(dense=nn.Linear(WIDTH, FFN_WIDTH))
        self.output = folders.block(dense=nn.Linear(FFN_WIDTH, WIDTH))

    def forward(self, x):
        def dropped(y):
            return F.dropout(y, DROPOUT, self.training)
        x = x + dropped(self.attention.output.dense(self.attention.attention(self.layernorm_before(x))))
        return x + dropped(self.output.dense(F.gelu(self.intermediate.dense(self.layernorm_after(x)))))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        embeddings = folders.block(patch_embeddings=folders.block(projection=nn.Conv2d(CHANNELS, WIDTH, PATCH, PATCH)))
        embeddings.cls_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        embeddings.position_embeddings = nn.Parameter(0.05 * torch.randn(1, 1 + (SIZE // PATCH) ** 2, WIDTH))
        self.vit = folders.block(embeddings=embeddings, encoder=folders.block(layer=nn.ModuleList(Layer() for _ in range(LAYERS))),
                         layernorm=nn.LayerNorm(WIDTH, EPSILON))
        self.classifier = nn.Linear(WIDTH, CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.08)
                nn.init.zeros_(module.bias)

    def forward(self, pixels):
        """(B, channels, height, width) -> (B, classes)"""
        embeddings = self.vit.embeddings
        patches = embeddings.patch_embeddings.projection(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([embeddings.cls_token.expand(len(pixels), -1, -1), patches], 1) + embeddings.position_embeddings
        for layer in self.vit.encoder.layer:
            x = layer(x)
        return self.classifier(self.vit.layernorm(x)[:, 0])


# Images

def read_digits():
    """Bytes (N, height, width) as a PNG file has them, the digits, and which are held out."""
    digits = load_digits()
    bytes_ = torch.tensor((digits.images * 255 / 16).round()).to(torch.uint8)
    return bytes_, torch.tensor(digits.target), torch.arange(len(bytes_)) % 5 == 4


def pixels_of(bytes_):
    """(N, height, width) -> (N, channels, height, width), normalised."""
    grey = (bytes_.float() / 255 - MEAN) / DEVIATION
    return grey[:, None].expand(-1, CHANNELS, -1, -1)


def moved(bytes_):
    """Each shifted by up to a pixel, turned by up to 12 degrees, and larger or smaller by up to a tenth."""
    def within(bound):
        return (2 * torch.rand(len(bytes_)) - 1) * bound
    angle, scale = within(math.radians(12)), 1 + within(0.1)
    x, y = within(2 / SIZE), within(2 / SIZE)
    rows = [torch.stack([scale * angle.cos(), -scale * angle.sin(), x], 1), torch.stack([scale * angle.sin(), scale * angle.cos(), y], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), [len(bytes_), 1, SIZE, SIZE], align_corners=False)
    return F.grid_sample(bytes_[:, None].float(), grid, align_corners=False)[:, 0]


def write_images(out):
    from PIL import Image

    out.mkdir(parents=True, exist_ok=True)
    bytes_, labels, held_out = read_digits()
    for i in held_out.nonzero()[:, 0].tolist():
        Image.fromarray(bytes_[i].numpy()).convert("RGB").save(out / f"{i:04}-{labels[i]}.png", optimize=True)


# Training and folders

def write_folder(out, state):
    out.mkdir(parents=True, exist_ok=True)
    folders.write_safetensors(out / "model.safetensors", state)
    labels = [str(i) for i in range(CLASSES)]
    folders.write_json(out / "config.json", {
        "architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": FFN_WIDTH, "hidden_act": "gelu", "layer_norm_eps": EPSILON,
        "qkv_bias": True, "image_size": SIZE, "patch_size": PATCH, "num_channels": CHANNELS, "torch_dtype": "float16",
        "id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}})
    folders.write_json(out / "preprocessor_config.json", {
        "image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": SIZE, "width": SIZE}, "resample": 2,
        "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": [MEAN] * CHANNELS, "image_std": [DEVIATION] * CHANNELS})


def accuracy_of_folder(folder):
    model = Vit().eval()
    model.load_state_dict(folders.read_safetensors(folder / "model.safetensors"))
    return accuracy(model)


@torch.no_grad()
def accuracy(model):
    bytes_, labels, held_out = read_digits()
    return (model(pixels_of(bytes_[held_out])).argmax(1) == labels[held_out]).float().mean().item()


def train(out, minutes):
    bytes_, labels, held_out = read_digits()
    bytes_, labels = bytes_[~held_out], labels[~held_out]
    torch.manual_seed(1)
    model, probe = Vit(), Vit().eval()
    print(f"{len(bytes_)} images, {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    with tempfile.TemporaryDirectory() as folder:  # every training is a new one
        training = folders.Training(model, pathlib.Path(folder) / "checkpoint.pt", rate=RATE, warm_up=WARM_UP, weight_decay=0.05)
    reported, losses = time.time(), []
    while True:
        for batch in torch.randperm(len(bytes_)).split(BATCH):
            loss = F.cross_entropy(model(pixels_of(moved(bytes_[batch]))), labels[batch])
            training.take(loss)
            losses.append(loss.item())
        late = training.seconds >= 60 * minutes
        if late or time.time() - reported > 60 * REPORT_MINUTES:
            probe.load_state_dict(folders.halves(training.mean))
            print(json.dumps({"minutes": training.seconds / 60, "steps": training.step, "loss": sum(losses) / len(losses), "accuracy": accuracy(probe)}), flush=True)
            write_folder(out, training.mean)
            reported, losses = time.time(), []
        if late:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--images", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.images:
        write_images(arguments.images)
    elif not arguments.out:
        parser.error("OUT_DIR is missing")
    elif arguments.score:
        print(f"accuracy: {accuracy_of_folder(arguments.out):.4f}")
    else:
        train(arguments.out, arguments.minutes)


if __name__ == "__main__":
    main()
