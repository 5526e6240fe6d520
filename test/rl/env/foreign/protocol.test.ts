import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { utf8 } from "../../../../src/base/text/utf8.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import { decodeDescription } from "../../../../src/rl/env/foreign/protocol.ts"
import { type Connect, status } from "../../../../src/spread/programs/Connection.ts"
import { foreignEnv } from "../../../../src/rl/env/foreign/foreignEnv.ts"
import { envError } from "../errors.ts"

/** Makes the env that a program describes. */
const described = (
  observationSpace: object,
  actionSpace: object = { type: "Discrete", n: 2 },
  { connect = noProgram, ...more }: { readonly connect?: Connect; readonly [key: string]: unknown } = {},
) => {
  const description = Result.getOrThrow(decodeDescription(textOf({ observationSpace, actionSpace, ...more })))
  return foreignEnv({ id: "Own-v0", name: "Own-v0", options: {}, processes: 1 }, description, connect)
}

const noProgram: Connect = () => {
  throw new Error("no program is started")
}

/** Returns the text of a program's description. */
const textOf = (parts: object): string =>
  JSON.stringify({ protocol: 1, observationType: "float32", maxSteps: null, ...parts })

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

describe("a description that is no env", () => {
  it.each([
    [{ keys: ["a"], spaces: [box(1), box(1)] }, '["a"]'],
    [{ keys: [], spaces: [box(1), box(1)] }, "[]"],
    [{ keys: ["b", "b"], spaces: [box(1), box(1)] }, '["b","b"]'],
    [{ keys: ["a", "b", "c"], spaces: [box(1), box(1)] }, '["a","b","c"]'],
    [{ spaces: [box(1), box(1)] }, "[]"],
  ])("is refused if the keys of a Dict are not those of its parts: %o", (space, found) => {
    const expected = `its observations are a Dict space; expected 2 different keys, one for each part, found ${found}`
    assert.strictEqual(envError(() => described({ type: "Dict", ...space })).message, `Own-v0: ${expected}`)
  })

  it.each([-5, 0])("is refused if an episode has %i steps", (maxSteps) => {
    const text = textOf({ observationSpace: box(1), actionSpace: { type: "Discrete", n: 2 }, maxSteps })
    assert.match(String(Result.getOrThrow(Result.flip(decodeDescription(text)))), /greater than 0.*maxSteps/s)
  })

  it("is refused if two agents have one name", () => {
    const { message } = envError(() => described(box(1), undefined, { agents: ["left", "right", "left"] }))
    assert.strictEqual(message, 'Own-v0: its program names two agents "left"; expected different names')
  })
})

describe("a program that fails in a step", () => {
  it.effect.each([-5, 2, 1e12])("ends the step, whichever env it names: %d", (index) =>
    Effect.gen(function* () {
      const parts = { observationSpace: box(1), actionSpace: { type: "Discrete", n: 2 } }
      const failure = utf8.encode(JSON.stringify({ message: "no fuel", index, traceback: "line 3" }))
      const connect: Connect = () =>
        Effect.succeed({
          send: (request, _, done) =>
            new DataView(request.buffer).getUint32(4, true) === 0
              ? done({ status: status.done, body: utf8.encode(textOf(parts)) })
              : done({ status: status.failed, body: failure }),
        })
      const batch = yield* Batch.open(described(parts.observationSpace, parts.actionSpace, { connect }), 2)
      if (batch.isAsync !== true) return assert.fail("expected a batch that steps elsewhere")
      const error = yield* Effect.flip(batch.reset(1))
      const expected = `its program failed in env ${index}; expected the index of one of its 2 envs: no fuel`
      assert.deepStrictEqual([error.message, error.userStack], [`Own-v0: ${expected}`, "line 3"])
    }).pipe(Effect.scoped),
  )
})
