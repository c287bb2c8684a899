"""Hugging Face folders of models trained here: weights in F16, and what all trainings need."""
import json
import os
import pathlib
import struct
import time

import torch
from torch import nn


def write_json(path, content):
    pathlib.Path(path).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def halves(state):
    """The state as a folder holds it: every number one of F16."""
    return {name: tensor.detach().to(torch.float16).to(torch.float32) for name, tensor in state.items()}


def write_safetensors(path, state):
    header, data = {"__metadata__": {"format": "pt"}}, []
    at = 0
    for name in sorted(state):
        bytes_ = state[name].detach().to(torch.float16).contiguous().numpy().tobytes()
        header[name] = {"dtype": "F16", "shape": list(state[name].shape), "data_offsets": [at, at + len(bytes_)]}
        data.append(bytes_)
        at += len(bytes_)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def read_safetensors(path):
    """Tensors of F16, as float32."""
    raw = pathlib.Path(path).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    state = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + at for at in entry["data_offsets"])
            state[name] = torch.frombuffer(bytearray(raw[begin:end]), dtype=torch.float16).reshape(entry["shape"]).float()
    return state


def block(**parts):
    """A module of named parts, whose names are those of the folder's tensors."""
    module = nn.Module()
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def cache_folder(name):
    """Where checkpoints are kept between runs."""
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "rondo" / "train" / name
    root.mkdir(parents=True, exist_ok=True)
    return root


class Training:
    """Steps with Adam, a warm-up and a rate that falls with the root of the step; the mean of late weights; checkpoints."""

    def __init__(self, model, checkpoint, *, rate, warm_up, mean_decay=0.999, weight_decay=0.0):
        self.model, self.checkpoint = model, pathlib.Path(checkpoint)
        self.rate, self.warm_up, self.mean_decay = rate, warm_up, mean_decay
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=weight_decay)
        self.mean = {name: value.detach().clone() for name, value in model.state_dict().items()}
        self.step, self.seconds, self.last = 0, 0.0, time.time()
        self.log = []
        if self.checkpoint.exists():
            kept = torch.load(self.checkpoint)
            model.load_state_dict(kept["model"])
            self.optimizer.load_state_dict(kept["optimizer"])
            self.mean, self.step, self.seconds, self.log = kept["mean"], kept["step"], kept["seconds"], kept["log"]

    def take(self, loss):
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * min(self.step / self.warm_up, (self.warm_up / self.step) ** 0.5)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        decay = min(self.mean_decay, self.step / (self.step + 10))
        for name, value in self.model.state_dict().items():
            self.mean[name].lerp_(value, 1 - decay)
        now = time.time()
        self.seconds += now - self.last
        self.last = now

    def save(self):
        kept = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "mean": self.mean,
                "step": self.step, "seconds": self.seconds, "log": self.log}
        partial = self.checkpoint.with_suffix(".part")
        torch.save(kept, partial)
        partial.replace(self.checkpoint)
