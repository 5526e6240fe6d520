import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fieldsOf, ProtobufMessage } from "../../../src/base/formats/protobuf.ts"
import { utf8 } from "../../../src/base/text/utf8.ts"
import { Backend, Policy, Reference, Space, Wasm } from "../../../src/index.ts"
import { aboutText } from "../../../src/rl/policy/about.ts"
import { toOnnx } from "../../../src/tensor/graph/onnx/export.ts"
import * as G from "../../../src/tensor/graph/ops.ts"

interface Node {
  readonly op: object
  readonly inputs: ReadonlyArray<number>
  readonly shape: ReadonlyArray<number>
  readonly dtype: string
}

/** The programs in the metadata of a policy's file. */
interface Metadata {
  nodes: Array<Node>
  programs: { main?: { inputs: Record<string, number>; outputs: Record<string, number> } }
}

/** Returns the file of a policy that adds up two numbers, after a change of its programs. */
const policyFile = (change: (metadata: Metadata) => void): Uint8Array => {
  const observations = G.input("observations", [1, 2])
  const actions = G.cast(G.sum(G.mul(observations, G.constant([1, 2])), 1), "i32")
  const about = aboutText({
    env: "Sum-v0",
    algorithm: "ppo",
    step: 1,
    observationSpace: Space.box(-10, 10, [2]),
    actionSpace: Space.discrete(50),
    hasActionMask: false,
  })
  const spec = { name: "sum.policy", inputs: { observations }, state: {}, outputs: { actions } }
  const file = new ProtobufMessage()
  for (const { field, value } of fieldsOf(
    toOnnx(spec, { weightsAsInitializers: {}, embedded: { about, programs: { main: spec } } }),
  )) {
    if (typeof value === "number") file.int(field, value)
    else if (field !== 14) file.bytes(field, value)
    else {
      const [, text] = [...fieldsOf(value)].map((one) => utf8.decode(Uint8Array.from(Object(one.value))))
      const metadata: Metadata = JSON.parse(text)
      change(metadata)
      file.message(field, new ProtobufMessage().text(1, "effect-rl").text(2, JSON.stringify(metadata)))
    }
  }
  return file.finish()
}

/** Appends nodes to the programs; the last one has the actions. Returns the position of the first one. */
const computing =
  (...nodes: ReadonlyArray<(at: number) => Node>) =>
  (metadata: Metadata): void => {
    for (const node of nodes) metadata.nodes.push(node(metadata.nodes.length - 1))
    if (metadata.programs.main !== undefined) metadata.programs.main.outputs.actions = metadata.nodes.length - 1
  }

const cast = (at: number): Node => ({ op: { kind: "cast" }, inputs: [at], shape: [1], dtype: "i32" })
const sum = (at: number): Node => ({
  op: { kind: "reduce", fn: "sum", axes: [0], keepDims: false },
  inputs: [at],
  shape: [],
  dtype: "f32",
})
/** The position of the observations among the nodes. */
const observationsAt = 0

describe("the file of a policy", () => {
  for (const [backend, layer] of Object.entries({ wasm: Wasm.layer, reference: Reference.layer })) {
    it.effect(`acts (${backend})`, () =>
      Effect.gen(function* () {
        const policy = yield* Policy.fromOnnx(policyFile(() => {}))
        assert.deepStrictEqual(yield* policy.act([3, 4]), { action: 11, state: undefined })
      }).pipe(Effect.scoped, Effect.provide(layer)),
    )
  }

  const refusals: Readonly<Record<string, readonly [(metadata: Metadata) => void, RegExp]>> = {
    "an op without inputs": [
      computing(() => ({ op: { kind: "binary", fn: "add" }, inputs: [], shape: [1], dtype: "i32" })),
      /node \d+: binary: expected 2 inputs, found 0/,
    ],
    "an op with a wrong shape": [
      computing(
        () => ({ op: { kind: "reshape" }, inputs: [observationsAt], shape: [1_000_000], dtype: "f32" }),
        sum,
        cast,
      ),
      /node \d+: reshape: expected a shape of the same size, found \[1000000\]/,
    ],
    "an op with a wrong type": [
      computing(() => ({ op: { kind: "unary", fn: "exp" }, inputs: [observationsAt], shape: [1, 2], dtype: "i32" })),
      /node \d+: unary: expected a result of f32 \[1, 2\], found i32 \[1, 2\]/,
    ],
    "a slice beyond its input": [
      computing(() => ({ op: { kind: "slice", starts: [0, 1e9] }, inputs: [0], shape: [1, 1], dtype: "f32" })),
      /node \d+: slice: \[1, 1\] from \[0, 1000000000\] is not inside/,
    ],
    "a graph that needs far more memory than the file has numbers": [
      computing(
        () => ({ op: { kind: "cast" }, inputs: [observationsAt], shape: [1, 2], dtype: "i32" }),
        (at) => ({ op: { kind: "oneHot", depth: 1e8 }, inputs: [at], shape: [1, 2, 1e8], dtype: "f32" }),
      ),
      /node \d+: oneHot: expected at most \d+ numbers in all nodes up to this one, found 2\d{8}/,
    ],
    "an op that selects from no rows": [
      computing(
        () => ({ op: { kind: "slice", starts: [0, 0] }, inputs: [observationsAt], shape: [0, 2], dtype: "f32" }),
        () => ({ op: { kind: "cast" }, inputs: [observationsAt], shape: [1, 2], dtype: "i32" }),
        (at) => ({ op: { kind: "gather" }, inputs: [at - 1, at], shape: [1, 2, 2], dtype: "f32" }),
      ),
      /node \d+: gather: expected at least one row to select from/,
    ],
    "an op that reads a later one": [
      computing((at) => ({ op: { kind: "stopGradient" }, inputs: [at + 1], shape: [1], dtype: "i32" })),
      /graph: expected one of the first \d+ nodes, found node \d+/,
    ],
    "no program": [({ programs }) => void delete programs.main, /expected a program that acts, found none/],
    "no observations": [
      ({ programs }) => void delete programs.main?.inputs.observations,
      /expected a program that reads 2 numbers, found 0/,
    ],
    "no node": [({ nodes }) => void nodes.splice(0), /expected one of the first 0 nodes/],
  }
  for (const [name, [change, expected]] of Object.entries(refusals)) {
    it.effect(`is refused if it has ${name}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Policy.fromOnnx(policyFile(change), { path: "a/policy.onnx" }))
        assert.strictEqual(error._tag, "PolicyError")
        assert.match(error.message, /^a\/policy\.onnx: /)
        assert.match(error.message, expected)
      }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
    )
  }

  it.effect("is refused if the backend cannot compile it, for whatever reason", () =>
    Effect.gen(function* () {
      const compile = () => Effect.die(new RangeError("Maximum call stack size exceeded"))
      const backend = { name: "failing", compile, compileAll: compile }
      const loading = Effect.provideService(Policy.fromOnnx(policyFile(() => {})), Backend, backend)
      const { message } = yield* Effect.flip(loading)
      assert.strictEqual(message, "policy.onnx: its program cannot be compiled: Maximum call stack size exceeded")
    }).pipe(Effect.scoped),
  )
})
