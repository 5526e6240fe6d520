import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { decode } from "../../../src/base/formats/torch/torch.ts"
import {
  type Bytes,
  dict,
  global,
  int,
  op,
  orderedDict,
  overlapping,
  parameter,
  pickle,
  string,
  tensor,
  torchFile,
  tuple,
  zip,
} from "./torchFile.ts"
import { FormatError } from "../../../src/base/formats/FormatError.ts"

const six = Float32Array.of(1, 2, 3, 4, 5, 6)
const ofSix = (shape: ReadonlyArray<number>, stride: ReadonlyArray<number>, offset = 0): Bytes =>
  tensor({ elements: 6, shape, stride, offset })

const caught = (bytes: Uint8Array): FormatError => {
  try {
    decode(bytes)
  } catch (error) {
    assert.instanceOf(error, FormatError)
    return error
  }
  return assert.fail("it was read")
}

describe("a file of torch.save", () => {
  it("written by Python's own pickle and zip is read, with parameters, views and attributes", () => {
    const file = readFileSync(new URL("data/state_dict.pt", import.meta.url))
    assert.deepEqual(decode(file), {
      "model.net.0.weight": { shape: [2, 3], data: six },
      "model.net.0.weight_t": { shape: [3, 2], data: Float32Array.of(1, 4, 2, 5, 3, 6) },
      "model.net.0.last_column": { shape: [2], data: Float32Array.of(3, 6) },
      "model.steps": { shape: [], data: Float64Array.of(20480), dtype: "I64" },
      "model.half": { shape: [2], data: Float32Array.of(1, -3.140625), dtype: "BF16" },
      "model.mask": { shape: [3], data: Uint8Array.of(1, 0, 1), dtype: "BOOL" },
    })
  })

  it("gives parameters and views of a shared storage copies of their numbers", () => {
    const value = dict(
      {
        weight: parameter(ofSix([2, 3], [3, 1])),
        transposed: ofSix([3, 2], [1, 3]),
        tail: ofSix([2], [1], 4),
        repeated: ofSix([2, 3], [0, 1], 3),
        one: ofSix([1, 1], [99, 7], 5),
        scalar: ofSix([], [], 2),
        none: ofSix([0, 3], [3, 1]),
        epoch: int(3),
      },
      orderedDict,
    )
    const tensors = decode(torchFile(value, { 0: six }))
    assert.deepEqual(tensors, {
      weight: { shape: [2, 3], data: six },
      transposed: { shape: [3, 2], data: Float32Array.of(1, 4, 2, 5, 3, 6) },
      tail: { shape: [2], data: Float32Array.of(5, 6) },
      repeated: { shape: [2, 3], data: Float32Array.of(4, 5, 6, 4, 5, 6) },
      one: { shape: [1, 1], data: Float32Array.of(6) },
      scalar: { shape: [], data: Float32Array.of(3) },
      none: { shape: [0, 3], data: new Float32Array(0) },
    })
    tensors.weight.data[4] = 0
    assert.strictEqual(tensors.tail.data[0], 5)
  })

  it.each([
    ["DoubleStorage", Float64Array.of(0.1), { data: Float64Array.of(0.1) }],
    ["HalfStorage", Uint16Array.of(0xc000), { data: Float32Array.of(-2), dtype: "F16" }],
    ["BFloat16Storage", Uint16Array.of(0x3f80), { data: Float32Array.of(1), dtype: "BF16" }],
    ["LongStorage", BigInt64Array.of(-5n), { data: Float64Array.of(-5), dtype: "I64" }],
    ["IntStorage", Int32Array.of(-5), { data: Int32Array.of(-5) }],
    ["ShortStorage", Int16Array.of(-5), { data: Int32Array.of(-5), dtype: "I16" }],
    ["CharStorage", Int8Array.of(-5), { data: Int32Array.of(-5), dtype: "I8" }],
    ["ByteStorage", Uint8Array.of(250), { data: Uint8Array.of(250) }],
    ["BoolStorage", Uint8Array.of(1), { data: Uint8Array.of(1), dtype: "BOOL" }],
  ] as const)("holds numbers as a %s", (type, numbers, expected) => {
    const value = dict({ a: tensor({ type, elements: 1, shape: [1], stride: [1] }) })
    assert.deepEqual(decode(torchFile(value, { 0: numbers })), { a: { shape: [1], ...expected } })
  })

  it("may be zip64, have a comment, or lack checksums", () => {
    const value = dict({ a: ofSix([6], [1]) })
    for (const options of [
      { zip64: true },
      { comment: "PK\x05\x06 and more, longer than a record" },
      { crc: () => 0 },
    ]) {
      assert.deepEqual(decode(torchFile(value, { 0: six }, options)), { a: { shape: [6], data: six } })
    }
  })

  it("ignores an OrderedDict's attributes", () => {
    const value = [...dict({ a: ofSix([6], [1]) }, orderedDict), ...dict({ _metadata: dict({}) }), op.build]
    assert.deepEqual(Object.keys(decode(torchFile(value, { 0: six }))), ["a"])
  })

  const of = (value: Bytes, numbers: Float32Array = six) => torchFile(value, { 0: numbers })
  const nested = (depth: number): Bytes => (depth === 0 ? ofSix([6], [1]) : dict({ d: nested(depth - 1) }))
  it.each([
    ["no archive", Uint8Array.from(pickle(dict({}))), "expected a zip archive, found no record of its end"],
    ["nothing in it", new Uint8Array(0), "expected a zip archive, found no record of its end"],
    [
      "the format before 1.6",
      Uint8Array.of(0x80, 2, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e),
      "it is in the format from before torch 1.6; load it with torch and save it again",
    ],
    [
      "the format before that",
      Uint8Array.from({ length: 512 }, (_, at) => "ustar".charCodeAt(at - 257) || 0),
      "torch 1.6",
    ],
    ["no pickle", zip([["archive/other", []]]), "the archive has 0 files FOLDER/data.pkl"],
    [
      "an entry twice",
      zip([
        ["a/b", []],
        ["a/b", []],
      ]),
      `the archive has "a/b" twice`,
    ],
    ["compressed entries", torchFile(dict({}), {}, { method: 8 }), "is compressed (method 8)"],
    ["entries in each other", overlapping(1000), "with the other entries, that is more than the archive has"],
    ["encrypted entries", torchFile(dict({}), {}, { flags: 1 }), "is encrypted"],
    ["other contents than it says", torchFile(dict({}), {}, { crc: () => 7 }), "do not match their CRC-32"],
    ["big-endian numbers", torchFile(dict({}), {}, { byteorder: "big" }), "big-endian"],
    ["no dict", of(ofSix([6], [1])), "expected a dict of tensors, found a Tensor"],
    ["no such storage", torchFile(dict({ a: ofSix([6], [1]) })), `tensor "a": the archive has no data/0`],
    ["a storage too short", of(dict({ a: ofSix([6], [1]) }), six.slice(1)), "data/0 has 20 bytes, expected 24"],
    [
      "a view beyond its storage",
      of(dict({ a: ofSix([2, 3], [4, 1]) })),
      `tensor "a": expected a view within the 6 elements of its storage, found element 6`,
    ],
    ["a huge view of little", of(dict({ a: ofSix([2 ** 30, 2 ** 30], [0, 0]) })), "far more numbers than the file"],
    [
      "an integer that no number holds",
      torchFile(dict({ a: tensor({ type: "LongStorage", elements: 1, shape: [], stride: [] }) }), {
        0: BigInt64Array.of(2n ** 60n),
      }),
      `tensor "a": 1152921504606846976 is beyond`,
    ],
    ["dicts without end", of(nested(40)), "nested more than 32 deep"],
    [
      "a dict in itself",
      of([op.emptyDict, 0x71, 0, ...string("a"), 0x68, 0, op.setItem]),
      `the dict "a." is also elsewhere`,
    ],
    [
      "two tensors of one name",
      of(dict({ "a.b": ofSix([6], [1]), a: dict({ b: ofSix([6], [1]) }) })),
      `two tensors "a.b"`,
    ],
    ["a name without end", of(dict({ ["a".repeat(2000)]: ofSix([6], [1]) })), "a name has 2000 characters"],
  ])("with %s is refused", (_, bytes, message) => {
    assert.include(caught(bytes).message, message)
  })
})

describe("a pickle", () => {
  const system = global("os", "system")
  const call = tuple(string("echo pwned"))
  it.each([
    ["GLOBAL of os.system and REDUCE", [...system, ...call, op.reduce], 2, `the name "os.system" is not allowed`],
    ["GLOBAL of builtins.eval", [...global("builtins", "eval"), ...call, op.reduce], 2, `the name "builtins.eval"`],
    ["a name with dots", global("torch", "_utils.os.system"), 2, `the name "torch._utils.os.system"`],
    ["another of torch's names", global("torch.storage", "_load_from_bytes"), 2, `"torch.storage._load_from_bytes"`],
    ["a class of torch", global("torch.nn.modules.linear", "Linear"), 2, "is not allowed"],
    ["STACK_GLOBAL", [...string("os"), ...string("system"), 0x93], 20, "the instruction STACK_GLOBAL is not allowed"],
    ["INST", [op.mark, 0x69, 0x6f, 0x73, 0x0a], 3, "the instruction INST"],
    ["OBJ", [op.mark, 0x6f], 3, "the instruction OBJ"],
    ["NEWOBJ", [...global("collections", "OrderedDict"), op.emptyTuple, 0x81], 28, "the instruction NEWOBJ"],
    ["NEWOBJ_EX", [0x92], 2, "the instruction NEWOBJ_EX"],
    ["EXT1", [0x82, 1], 2, "the instruction EXT1"],
    ["EXT2", [0x83, 1, 0], 2, "the instruction EXT2"],
    ["EXT4", [0x84, 1, 0, 0, 0], 2, "the instruction EXT4"],
    ["PERSID", [0x50, 0x0a], 2, "the instruction PERSID"],
    ["bytes", [0x43, 0], 2, "the instruction SHORT_BINBYTES"],
    ["a second PROTO", [0x80, 4], 2, "the instruction PROTO"],
    ["what is no instruction", [0xff], 2, "0xff is not an instruction"],
    ["BUILD on a dict", [op.emptyDict, op.emptyDict, op.build], 4, "the instruction BUILD is not allowed on a Dict"],
    [
      "BUILD on a storage's type",
      [...global("torch", "FloatStorage"), op.emptyDict, op.build],
      23,
      "BUILD is not allowed on a Global",
    ],
    ["BUILD on a tensor", [...ofSix([6], [1]), op.emptyDict, op.build], null, "BUILD is not allowed on a Tensor"],
    ["BUILD with a state that is no dict", [...orderedDict, op.emptyTuple, op.build], 30, "the attributes are a Tuple"],
    [
      "a call of a storage's type",
      [...global("torch", "FloatStorage"), op.emptyTuple, op.reduce],
      23,
      "torch.FloatStorage cannot be called",
    ],
    ["a call of a text", [...string("os.system"), ...call, op.reduce], null, "a string cannot be called"],
    [
      "an OrderedDict with arguments",
      [...global("collections", "OrderedDict"), ...call, op.reduce],
      null,
      "collections.OrderedDict has arguments that torch.save does not write",
    ],
    [
      "a tensor of nothing",
      [...global("torch._utils", "_rebuild_tensor_v2"), op.emptyTuple, op.reduce],
      null,
      "has arguments that torch.save does not write",
    ],
    [
      "a parameter of a dict",
      parameter(dict({})),
      null,
      "torch._utils._rebuild_parameter has arguments that torch.save does not write",
    ],
    ["a negative stride", ofSix([6], [-1]), null, "has arguments that torch.save does not write"],
    [
      "a persistent id does not refer to a storage",
      [...tuple(string("module"), string("os")), op.persistentId],
      null,
      "a persistent id does not refer to a storage",
    ],
    [
      "a storage of no type",
      [
        ...tuple(string("storage"), global("collections", "OrderedDict"), string("0"), string("cpu"), int(1)),
        op.persistentId,
      ],
      null,
      "does not refer to a storage",
    ],
    ["a tensor as a key", [op.emptyDict, ...ofSix([6], [1]), ...int(1), op.setItem], null, "a Tensor cannot be a key"],
    ["an entry in a list", [op.emptyList, ...int(1), ...int(2), op.setItem], null, "a List has no entries"],
    ["an item in a dict", [op.emptyDict, ...int(1), op.append], null, "a Dict cannot be appended to"],
    ["an empty stack", [op.append], 2, "the stack is empty"],
    ["no mark", [op.emptyDict, op.setItems], 3, "there is no mark"],
    ["a key without value", [op.emptyDict, op.mark, ...int(1), op.setItems], null, "a key has no value"],
    ["what was not remembered", [0x68, 7], 2, "the memo has no value 7"],
    ["two values", [op.emptyDict, op.emptyDict], 4, "it ends with more than one value"],
    ["a mark left", [op.mark, op.emptyDict], 4, "it ends with more than one value"],
    ["something after its end", [op.emptyDict, op.stop], 3, "expected the end of the file after STOP"],
    ["a text that is cut short", [0x58, 255, 255, 255, 255], 2, "the pickle ends too early"],
    ["a text that is not UTF-8", [0x58, 1, 0, 0, 0, 255], 2, "a text is not UTF-8"],
    ["a dict in each byte", new Array<number>(2 ** 20 + 1).fill(op.emptyDict), null, "makes more than 1048576 lists"],
    ["a mark in each byte", new Array<number>(2 ** 20 + 1).fill(op.mark), null, "makes more than 1048576 lists"],
    ["half a name", [0x63, 0x6f, 0x73], 2, "the pickle ends too early"],
  ] as const)("with %s is refused", (_, value, offset, message) => {
    const error = caught(torchFile(value, { 0: six }))
    assert.include(error.message, message)
    assert.match(error.message, /^data\.pkl, byte \d+: /)
    if (offset !== null) assert.strictEqual(error.offset, offset)
  })

  it.each([
    ["another protocol", [0x80, 4, 0x4e, 0x2e], "it has protocol 4; torch.save writes protocol 2"],
    ["no protocol", [0x4e, 0x2e], "expected a pickle, which begins with byte 0x80"],
    ["nothing", [], "the pickle ends too early"],
    ["no end", [0x80, 2, 0x4e], "the pickle ends too early"],
  ])("with %s is refused", (_, bytes, message) => {
    assert.include(caught(zip([["archive/data.pkl", bytes]])).message, message)
  })
})
