import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import type { DenseActor } from "../../../src/rl/export/DenseActor.ts"
import { PolicyError } from "../../../src/rl/policy/PolicyError.ts"
import { actorToHdf5, type Hdf5Options } from "../../../src/rl/export/rltools.ts"
import { drawnLayer, rowsFor, squashed, uneven } from "./actors.ts"
import { type Found, read } from "../../base/formats/hdf5/hdf5Reader.ts"
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
    assert.instanceOf(error, PolicyError)
    return error.message
  }
  return assert.fail("it was written")
}

describe("a policy as RLtools' checkpoint.h5", () => {
  it("is a sequence of standardize, mlp and sample_and_squash, with an example", () => {
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

  it("lists its dense layers one by one if RLtools' mlp cannot hold them", () => {
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

  it("is refused if RLtools lacks a layer", () => {
    const written = (actor: DenseActor) => refused(() => actorToHdf5(actor, options(actor)))
    assert.strictEqual(written({ inputs: 2, layers: [drawnLayer(2, 1, "silu")] }), "activation: RLtools has no silu")
    const nameless = { ...options(uneven), checkpointName: "" }
    assert.strictEqual(
      refused(() => actorToHdf5(uneven, nameless)),
      "checkpointName: expected a name, found an empty text",
    )
    const short = { ...options(uneven), example: { input: new Float32Array(4), output: new Float32Array(1) } }
    assert.include(
      refused(() => actorToHdf5(uneven, short)),
      "example: expected at least one row",
    )
  })

  it("is read by HDF5's own tools, where they are installed", { tags: "slow" }, ({ skip }) => {
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
