import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { decodeDescription } from "../../../../src/rl/env/foreign/protocol.ts"
import { foreignEnv } from "../../../../src/rl/env/foreign/foreignEnv.ts"
import { envError } from "../errors.ts"

/** Makes the env that a program describes. */
const described = (observationSpace: object, actionSpace: object = { type: "Discrete", n: 2 }) => {
  const text = JSON.stringify({
    protocol: 1,
    observationSpace,
    actionSpace,
    observationType: "float32",
    maxSteps: null,
  })
  const description = Result.getOrThrow(decodeDescription(text))
  return foreignEnv({ id: "Own-v0", name: "Own-v0", options: {}, processes: 1 }, description, () => {
    throw new Error("no program is started")
  })
}

const box = (...shape: ReadonlyArray<number>) => ({ type: "Box", shape, low: 0, high: null })

describe("the spaces that a program describes", () => {
  it("may have a bound for all numbers or one for each, and none", () => {
    const { observationSpace } = described({ type: "Tuple", spaces: [box(2), { ...box(2), low: [null, 1] }, box()] })
    assert.deepInclude(observationSpace, {
      parts: [
        { _tag: "Box", shape: [2], low: [0, 0], high: [Infinity, Infinity] },
        { _tag: "Box", shape: [2], low: [-Infinity, 1], high: [Infinity, Infinity] },
        { _tag: "Box", shape: [1], low: [0], high: [Infinity] },
      ],
    })
  })

  const most = "(an array has so many numbers)"
  it.each([
    [box(2e7), `the numbers of its observations: expected a value between 1 and 16777216 ${most}, found 20000000`],
    [
      box(1e5, 1e5),
      `the numbers of its observations: expected a value between 1 and 16777216 ${most}, found 10000000000`,
    ],
    [box(0), `the numbers of its observations: expected a value between 1 and 16777216 ${most}, found 0`],
    [
      { type: "Tuple", spaces: [box(1e7), { type: "Dict", keys: ["a"], spaces: [{ type: "MultiBinary", n: 1e7 }] }] },
      `the numbers of its observations: expected a value between 1 and 16777216 ${most}, found 20000000`,
    ],
    [{ type: "Discrete", n: 1e12 }, `discrete: expected at most 16777216 ${most}, found 1000000000000`],
  ])("are refused before arrays are made: %o", (space, expected) => {
    assert.strictEqual(envError(() => described(space)).message, `Own-v0: ${expected}`)
  })

  it.each([
    [box(2e7), `box: shape [20000000]: expected at most 16777216 ${most}, found 20000000`],
    [
      { type: "MultiDiscrete", nvec: [1e7, 1e7] },
      `multiDiscrete: all choices together: expected at most 16777216 ${most}, found 20000000`,
    ],
  ])("are refused as actions: %o", (space, expected) => {
    assert.strictEqual(envError(() => described(box(2), space)).message, `Own-v0: ${expected}`)
  })
})
