"""Makes state_dict.pt: what torch.save would hand to Python's own pickle and zip, which write it here. Needs no torch."""

import collections
import io
import os
import pickle
import struct
import sys
import types
import zipfile

torch = types.ModuleType("torch")
utils = types.ModuleType("torch._utils")
sys.modules.update({"torch": torch, "torch._utils": utils})


def named(module, name, value):
    value.__module__, value.__qualname__, value.__name__ = module.__name__, name, name
    setattr(module, name, value)
    return value


rebuild_tensor = named(utils, "_rebuild_tensor_v2", lambda *args: None)
rebuild_parameter = named(utils, "_rebuild_parameter", lambda *args: None)
kinds = {
    name: named(torch, name, type(name, (), {}))
    for name in ["FloatStorage", "LongStorage", "BFloat16Storage", "BoolStorage"]
}


class Storage:
    def __init__(self, kind, key, elements):
        self.id = ("storage", kinds[kind], key, "cpu", elements)


class Tensor:
    def __init__(self, *args):
        self.args = args

    def __reduce_ex__(self, protocol):
        return rebuild_tensor, (*self.args, False, collections.OrderedDict())


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce_ex__(self, protocol):
        return rebuild_parameter, (self.tensor, True, collections.OrderedDict())


class Pickler(pickle._Pickler):
    def persistent_id(self, value):
        return value.id if isinstance(value, Storage) else None


weight = Storage("FloatStorage", "0", 6)
state = collections.OrderedDict()
state["net.0.weight"] = Parameter(Tensor(weight, 0, (2, 3), (3, 1)))
state["net.0.weight_t"] = Tensor(weight, 0, (3, 2), (1, 3))
state["net.0.last_column"] = Tensor(weight, 2, (2,), (3,))
state["steps"] = Tensor(Storage("LongStorage", "1", 1), 0, (), ())
state["half"] = Tensor(Storage("BFloat16Storage", "2", 2), 0, (2,), (1,))
state["mask"] = Tensor(Storage("BoolStorage", "3", 3), 0, (3,), (1,))
state._metadata = collections.OrderedDict([("", {"version": 1}), ("net.0", {"version": 1})])

data = io.BytesIO()
Pickler(data, protocol=2).dump(
    {"model": state, "epoch": 3, "loss": 0.25, "seed": 2**70, "betas": (0.9, 0.999), "tags": ["a", None, True]}
)
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "state_dict.pt")
with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
    for name, contents in {
        "data.pkl": data.getvalue(),
        "byteorder": b"little",
        "data/0": struct.pack("<6f", 1, 2, 3, 4, 5, 6),
        "data/1": struct.pack("<q", 20480),
        "data/2": bytes([0x80, 0x3F, 0x49, 0xC0]),
        "data/3": bytes([1, 0, 1]),
        "version": b"3\n",
    }.items():
        archive.writestr(zipfile.ZipInfo(f"state_dict/{name}"), contents)
