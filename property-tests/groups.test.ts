import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Effect, type Layer, Record } from "effect"
import { Backend, type BackendUnavailable, type Program } from "../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../src/tensor/backend/onnx-node.ts"
import * as Reference from "../src/tensor/backend/reference.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import * as G from "../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { identical } from "./support/agreement.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

const targets: Readonly<Record<string, Layer.Layer<Backend, BackendUnavailable>>> = {
  wasm: Wasm.layer,
  "onnx-node on the CPU": OnnxNode.layerCpu(),
  reference: Reference.layer,
}

/** A step of a group: a program runs, or a state is written through it. */
const step = fc.record({
  program: fc.nat(2),
  writes: fc.constantFrom(null, null, null, "s", "t", "r"),
  seed: fc.nat(99),
})

/**
 * Grows a program that leaves the states named in `kept` unchanged. It also returns values that depend only on states, which
 * a backend may compute before a run and keep until a state changes.
 */
const grown = (picked: Parameters<typeof grow>[0], kept: ReadonlyArray<string>, frozen: boolean): ProgramSpec => {
  const spec = grow(picked)
  const { s, t } = spec.state
  return {
    ...spec,
    state: Record.map(spec.state, (entry, name) => (kept.includes(name) ? { tensor: entry.tensor, frozen } : entry)),
    outputs: { ...spec.outputs, ofStates: G.add(G.matmul(G.exp(s.tensor), t.tensor), spec.inputs.c) },
  }
}

/** Three programs. The first changes no state, so a backend may keep all that it computed from states. */
const three = fc
  .tuple(...[0, 1, 2].map(() => fc.tuple(choices, fc.subarray(["s", "t", "r"]), fc.boolean())))
  .map((programs) =>
    programs.map(([picked, kept, frozen], index) => grown(picked, index === 0 ? ["s", "t", "r"] : kept, frozen)),
  )

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(i * 7 + seed))

/** Copies the states of a program to others, which have states of their own. */
const copyStates = (from: Program, to: ReadonlyArray<Program>): void => {
  for (const state of ["s", "t", "r"]) {
    const values = Effect.runSync(from.read(state))
    for (const other of to) Effect.runSync(other.write(state, values))
  }
}

/** Runs the steps on a group and on separate programs whose states are copied; returns the first difference, if any. */
const firstDifference = (
  backend: Backend["Service"],
  specs: ReadonlyArray<ProgramSpec>,
  steps: ReadonlyArray<{ readonly program: number; readonly writes: string | null; readonly seed: number }>,
) =>
  Effect.gen(function* () {
    const shared = yield* backend.compileAll({ 0: specs[0], 1: specs[1], 2: specs[2] }, { sharedFeeds: ["b"] })
    const group = [shared[0], shared[1], shared[2]]
    const separate = yield* Effect.forEach(specs, (spec) => backend.compile(spec))
    for (const [index, { program: at, seed, writes }] of steps.entries()) {
      const pair = [group[at], separate[at]]
      if (writes !== null) {
        const data = numbers(24, seed)
        for (const each of pair) yield* each.write(writes, data)
      } else {
        for (const { feeds } of pair)
          for (const name of ["a", "b", "c", "d"]) feeds[name].set(numbers(feeds[name].length, seed))
        for (const each of pair) yield* each.run
        for (const name of Object.keys(specs[at].outputs)) {
          const wrong = identical(pair[0].results[name], pair[1].results[name])
          if (wrong !== undefined) return `step ${index}, ${name}: ${wrong}`
        }
      }
      copyStates(
        separate[at],
        separate.filter((_, other) => other !== at),
      )
      for (const state of ["s", "t", "r"]) {
        const wrong = identical(yield* group[(at + 1) % 3].read(state), yield* separate[0].read(state))
        if (wrong !== undefined) return `step ${index}, state ${state}: ${wrong}`
      }
    }
    return undefined
  }).pipe(Effect.scoped)

describe("programs that share states give the bits of separate programs whose states are copied after each step", () => {
  for (const [name, layer] of Object.entries(targets)) {
    it(name, () => {
      fc.assert(
        fc.property(three, fc.array(step, { minLength: 3, maxLength: 12 }), (specs, steps) => {
          const difference = Effect.flatMap(Backend, (backend) => firstDifference(backend, specs, steps)).pipe(
            Effect.provide(layer),
          )
          assert.isUndefined(Effect.runSync(difference))
        }),
        { numRuns: tries(40) },
      )
    })
  }
})
