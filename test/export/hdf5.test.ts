import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { type DenseActor, ExportError } from "../../src/export/DenseActor.ts"
import { actorToHdf5, encode, type Group, type Hdf5Options } from "../../src/export/hdf5.ts"
import { lookup3 } from "../../src/formats/hdf5/lookup3.ts"
import { drawnLayer, rowsFor, squashed, uneven } from "./actors.ts"
import { checksum, type Found, read } from "./hdf5Reader.ts"
import { inFolder, isInstalled, output } from "./programs.ts"

const options = (actor: DenseActor): Hdf5Options => ({
  checkpointName: "steps/000000000002000",
  meta: { environment: { name: "pendulum" } },
  example: rowsFor(actor, 13),
})

const at = (file: Found, path: string): Found =>
  path
    .split("/")
    .filter((name) => name !== "")
    .reduce((node, name) => node.children?.[name] ?? assert.fail(`${path}: there is no "${name}"`), file)

const refused = (make: () => unknown): string => {
  try {
    make()
  } catch (error) {
    assert.instanceOf(error, ExportError)
    return error.message
  }
  return assert.fail("it was written")
}

describe("the checksum", () => {
  it("is its author's, for the texts that he gives", () => {
    const text = new TextEncoder().encode("Four score and seven years ago")
    for (const sum of [lookup3, checksum]) {
      assert.strictEqual(sum(new Uint8Array(0)), 0xdeadbeef)
      assert.strictEqual(sum(text), 0x17770551)
    }
  })
})

describe("an HDF5 file", () => {
  const data = Float32Array.of(1, -0, 3.5, Infinity, NaN, 1e-45)
  const tree: Group = {
    attributes: { "": "x" },
    children: { numbers: { shape: [2, 3], data } },
  }

  it("begins with its signature, a superblock of version 2 and its length", () => {
    const bytes = encode({ children: {} })
    const start = [0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a, 2, 8, 8, 0]
    assert.deepStrictEqual([...bytes.subarray(0, 12)], start)
    assert.strictEqual(new DataView(bytes.buffer).getBigUint64(28, true), BigInt(bytes.length))
    assert.deepEqual(read(bytes), { attributes: {}, children: {} })
  })

  it("holds groups, numbers and texts, also none of them and very many", () => {
    const many = Object.fromEntries(
      Array.from({ length: 5000 }, (_, index) => [`text ${index}`, `${index} ü`.repeat(index % 7)]),
    )
    const given: Group = {
      attributes: { long: "x".repeat(200_000), empty: "" },
      children: {
        "a b": { attributes: many, children: {} },
        "ü 漢": { shape: [2, 3], data, attributes: { unit: "m" } },
        one: { shape: [], data: Float32Array.of(7) },
        none: { shape: [2, 0], data: new Float32Array(0) },
        // A part of a larger array.
        part: { shape: [2], data: data.subarray(2, 4) },
      },
    }
    const found = read(encode(given))
    assert.deepEqual(found.attributes, given.attributes)
    assert.deepEqual(at(found, "a b").attributes, many)
    assert.deepEqual(at(found, "ü 漢"), { attributes: { unit: "m" }, shape: [2, 3], data })
    assert.deepEqual(at(found, "one"), { attributes: {}, shape: [], data: Float32Array.of(7) })
    assert.deepEqual(at(found, "none"), { attributes: {}, shape: [2, 0], data: new Float32Array(0) })
    assert.deepEqual(at(found, "part").data, Float32Array.of(3.5, Infinity))
    assert.deepEqual(encode(given), encode(given))
  })

  it("refuses names, texts and shapes that cannot be", () => {
    const numbers = { shape: [2], data: new Float32Array(2) }
    const cases: ReadonlyArray<readonly [string, Group]> = [
      ["/: an attribute needs a name", tree],
      [`/: nothing can be named ""`, { children: { "": numbers } }],
      [`/a: nothing can be named "b/c"`, { children: { a: { children: { "b/c": numbers } } } }],
      [`/a: nothing can be named "."`, { children: { a: { children: { ".": numbers } } } }],
      [`/: the attribute "a" cannot be written as text`, { attributes: { a: "x\0y" }, children: {} }],
      [`/: the attribute "a" cannot be written as text`, { attributes: { a: "\ud800" }, children: {} }],
      ["/a has 2 numbers, its shape [3] needs 3", { children: { a: { ...numbers, shape: [3] } } }],
      ["/a: [2, 0.5, 2] is no shape", { children: { a: { ...numbers, shape: [2, 0.5, 2] } } }],
      ["/: a name in it is too long", { children: { ["x".repeat(70_000)]: numbers } }],
    ]
    for (const [message, group] of cases)
      assert.strictEqual(
        refused(() => encode(group)),
        message,
      )
  })
})

describe("a policy as RLtools' checkpoint.h5", () => {
  it("is a sequence: inputs standardised, a network, an action squashed; and an example", () => {
    const given = options(squashed)
    const file = read(actorToHdf5(squashed, given))
    assert.deepStrictEqual(Object.keys(file.children ?? {}), ["actor", "example"])
    assert.deepStrictEqual(at(file, "actor").attributes, {
      checkpoint_name: "steps/000000000002000",
      meta: `{"environment":{"name":"pendulum"}}`,
      type: "sequential",
    })
    const layers = at(file, "actor/layers")
    assert.deepStrictEqual(
      Object.entries(layers.children ?? {}).map(([name, { attributes }]) => [name, attributes["type"]]),
      [
        ["0", "standardize"],
        ["1", "mlp"],
        ["2", "sample_and_squash"],
      ],
    )
    assert.deepEqual(at(layers, "0/precision/parameters"), {
      attributes: { type: "tensor", num_dims: "1", dim_0: "3" },
      shape: [3],
      data: Float32Array.of(2, 1, 1 / 3),
    })
    assert.deepEqual(at(layers, "0/mean/parameters").data, squashed.normalisation?.mean)
    assert.strictEqual(at(layers, "1").attributes["num_layers"], "4")
    const names = ["input_layer", "hidden_layers/0", "hidden_layers/1", "output_layer"]
    for (const [index, name] of names.entries()) {
      const { weights, biases, activation } = squashed.layers[index]
      const found = at(layers, `1/${name}`)
      assert.deepStrictEqual(found.attributes, { activation_function: activation.toUpperCase(), type: "dense" })
      const shape = [biases.length, weights.length / biases.length]
      assert.deepEqual(at(found, "weights/parameters"), {
        attributes: { type: "tensor", num_dims: "2", dim_0: String(shape[0]), dim_1: String(shape[1]) },
        shape,
        data: weights,
      })
      assert.deepEqual(at(found, "biases/parameters").data, biases)
      assert.deepEqual(at(found, "biases/parameters").shape, [biases.length])
    }
    assert.deepEqual(at(file, "example/input").data, given.example.input)
    assert.deepEqual(at(file, "example/output"), {
      attributes: { type: "tensor", num_dims: "3", dim_0: "1", dim_1: "13", dim_2: "2" },
      shape: [1, 13, 2],
      data: given.example.output,
    })
  })

  it("has its dense layers one by one where RLtools' network could not hold them", () => {
    const types = (actor: DenseActor) =>
      Object.values(at(read(actorToHdf5(actor, options(actor))), "actor/layers").children ?? {}).map(
        ({ attributes }) => attributes["activation_function"] ?? attributes["type"],
      )
    assert.deepStrictEqual(types(uneven), ["TANH", "TANH", "IDENTITY"])
    assert.deepStrictEqual(types({ inputs: 2, layers: [drawnLayer(2, 2, "tanh")] }), ["TANH"])
    const mixed = [drawnLayer(2, 3, "gelu"), drawnLayer(3, 3, "sigmoid"), drawnLayer(3, 1, "tanh")]
    assert.deepStrictEqual(types({ inputs: 2, layers: mixed }), ["GELU", "SIGMOID", "TANH"])
    assert.deepStrictEqual(types({ inputs: 2, layers: [drawnLayer(2, 3, "relu"), drawnLayer(3, 1, "tanh")] }), ["mlp"])
  })

  it("is refused where RLtools has no such layer", () => {
    const written = (actor: DenseActor) => refused(() => actorToHdf5(actor, options(actor)))
    assert.strictEqual(written({ inputs: 2, layers: [drawnLayer(2, 1, "silu")] }), "RLtools has no activation silu")
    const normalisation = { mean: new Float32Array(3), deviation: Float32Array.of(1, 1, 1), clip: 5 }
    assert.include(written({ ...squashed, normalisation }), "RLtools' standardize has no limit")
    const bounds = { low: Float32Array.of(0, 0), high: Float32Array.of(1, 1), scaled: true }
    assert.strictEqual(written({ ...squashed, bounds }), "RLtools has no layer for bounds of actions")
    const nameless = { ...options(uneven), checkpointName: "" }
    assert.strictEqual(
      refused(() => actorToHdf5(uneven, nameless)),
      "a checkpoint needs a name",
    )
    const short = { ...options(uneven), example: { input: new Float32Array(4), output: new Float32Array(1) } }
    assert.include(
      refused(() => actorToHdf5(uneven, short)),
      "the example has 4 numbers in and 1 out",
    )
  })

  it("is read by HDF5's own tools, where they are installed", ({ skip }) => {
    if (!isInstalled("h5dump")) skip("h5dump is not installed (Debian's hdf5-tools has it)")
    for (const actor of [squashed, uneven]) {
      inFolder((folder) => {
        const path = join(folder, "checkpoint.h5")
        const bytes = actorToHdf5(actor, options(actor))
        writeFileSync(path, bytes)
        const visit = (node: Found, name: string): number => {
          // One text a line, quoted, the escapes being h5dump's.
          const dumped = output("h5dump", [
            "-w",
            "0",
            "-m",
            "%.9g",
            node.data === undefined ? "-g" : "-d",
            name === "" ? "/" : name,
            path,
          ])
          for (const [attribute, value] of Object.entries(node.attributes)) {
            const start = dumped.indexOf(`ATTRIBUTE "${attribute}" {`)
            assert.include(dumped.slice(start, dumped.indexOf("ATTRIBUTE", start + 1) >>> 0), `(0): "${value}"`)
          }
          if (node.data !== undefined) {
            const [, block] = /DATA \{([^}]*)\}/.exec(dumped) ?? assert.fail(`${name} has no data`)
            const numbers = block.replace(/\([\d,]+\):/g, " ").split(/[\s,]+/)
            const found = Float32Array.from(numbers.filter((number) => number !== "").map(Number))
            assert.deepEqual(found, node.data)
            assert.include(dumped, `SIMPLE { ( ${node.shape?.join(", ")} ) /`)
          }
          const children = Object.entries(node.children ?? {})
          return children.reduce((sum, [child, found]) => sum + visit(found, `${name}/${child}`), 1)
        }
        assert.isAbove(visit(read(bytes), ""), 10)
      })
    }
  })
})
