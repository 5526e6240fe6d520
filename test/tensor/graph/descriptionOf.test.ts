import { assert, describe, it } from "@effect/vitest"
import { descriptionOf } from "../../../src/tensor/graph/descriptionOf.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"

/** A program that computes `of` two inputs and a state. */
const program = (of: (x: Tensor, y: Tensor, s: Tensor) => Tensor, more: Partial<ProgramSpec> = {}): ProgramSpec => {
  const [x, y, s] = [G.input("x", [4, 3]), G.input("y", [4, 3]), G.state("s", [3])]
  return { name: "program", inputs: { x, y }, state: { s: { tensor: s } }, outputs: { out: of(x, y, s) }, ...more }
}

const table = (change: number) =>
  G.constant(
    Float32Array.from({ length: 300 }, (_, i) => (i === 200 ? change : i)),
    [100, 3],
  )
const shared = G.constant(new Float32Array(300), [100, 3])
const numbers = new Float32Array(300)

/** Programs that differ in one thing from one another. */
const different: Readonly<Record<string, ReadonlyArray<Readonly<Record<string, ProgramSpec>>>>> = {
  "its names": [
    { program: program((x) => x) },
    { other: program((x) => x) },
    { program: program((x) => x, { name: "other" }) },
  ],
  "its ops and their inputs": [
    { program: program((x, y) => G.add(x, y)) },
    { program: program((x, y) => G.add(y, x)) },
    { program: program((x, y) => G.mul(x, y)) },
    { program: program((x) => G.add(x, x)) },
    { program: program((x, _, s) => G.add(x, s)) },
    { program: program((x) => G.sum(x, [0])) },
    { program: program((x) => G.sum(x, [1])) },
    { program: program((x) => G.max(x, [0])) },
  ],
  "numbers that JSON does not have": [0, -0, -1, -Infinity, NaN].map((low) => ({
    program: program((x) => G.pad(x, [1, 0], [0, 0], low)),
  })),
  "constants, small and large": [
    { program: program((x) => G.add(x, G.constant(new Float32Array([1, 2, 3]), [3]))) },
    { program: program((x) => G.add(x, G.constant(new Float32Array([1, 2, 4]), [3]))) },
    { program: program(() => table(1)) },
    { program: program(() => table(2)) },
  ],
  "what its programs share": [
    { one: program(() => shared), two: program(() => shared) },
    { one: program(() => G.constant(numbers, [100, 3])), two: program(() => G.constant(numbers, [100, 3])) },
    { one: program(() => table(0)), two: program(() => table(0)) },
  ],
  "the order of its parts": [
    { out: 1, more: 2 },
    { more: 2, out: 1 },
  ].map((order) => ({
    program: program((x) => x, {
      outputs: Object.fromEntries(Object.keys(order).map((key) => [key, G.state("s", [3])])),
    }),
  })),
  "its states": [{}, { frozen: true }, { frozen: false }, { stacked: true }].map((flags) => {
    const s = G.state("s", [3])
    return { program: { name: "p", inputs: {}, state: { s: { tensor: s, ...flags } }, outputs: { out: G.neg(s) } } }
  }),
  "its next values": [true, false].map((twice) => {
    const s = G.state("s", [3])
    const next = twice ? G.mul(s, 2) : s
    return { program: { name: "p", inputs: {}, state: { s: { tensor: s, next } }, outputs: { out: G.mul(s, 2) } } }
  }),
  "its minibatches": [
    { rows: 8, batch: 4, count: 2, gathered: ["x"] },
    { rows: 12, batch: 4, count: 2, gathered: ["x"] },
    { rows: 8, batch: 4, count: 1, gathered: ["x"] },
    { rows: 8, batch: 4, count: 2, gathered: ["x", "y"] },
    { rows: 8, batch: 4, count: 2, gathered: ["x"], continueWhile: G.constant(new Uint8Array([1]), [], "bool") },
  ].map((minibatches) => ({ program: program((x) => x, { minibatches }) })),
  "names with the characters that part them": [
    { program: program((x) => x, { outputs: { 'a",1': G.state("s", [3]) } }) },
    { program: program((x) => x, { outputs: { a: G.state("s", [3]) } }) },
  ],
}

describe("the description of programs differs by", () => {
  for (const [what, groups] of Object.entries(different))
    it(what, () => {
      const texts = groups.map(descriptionOf)
      assert.lengthOf([...new Set(texts)], groups.length, texts.join("\n\n"))
    })
})
