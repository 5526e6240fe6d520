import { readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Schema } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { observationSchema } from "../../../../src/rl/export/worker/observationSchema.ts"
import { effect, program, resultOf, withFolder, write } from "../../../command/cli/effect.ts"
import { tries } from "../../../house/tries.ts"
import { exported } from "./exported.ts"

/** Declares the part of `WebAssembly` that these tests use; the types of Node lack it. */
declare const WebAssembly: { readonly Module: new (bytes: Uint8Array) => object }

interface Acted {
  readonly action: number | ReadonlyArray<number>
  readonly memory?: ReadonlyArray<number>
}
type Act = (observation: unknown, memory?: unknown) => Acted

/** Makes the policy in Node from an exported folder, as its README says. */
const policyIn = async (folder: string): Promise<Act> => {
  const { instantiate } = await import(pathToFileURL(join(folder, "policy.js")).href)
  return instantiate(new WebAssembly.Module(readFileSync(join(folder, "policy.wasm")))).act
}

const complaint = (body: () => unknown): string => {
  try {
    body()
  } catch (error) {
    if (error instanceof Error && error.name === "PolicyError") return error.message
    throw error
  }
  return "no error"
}

/** Draws observations of a shape, flat or nested, most of which have something wrong in one place. */
const observationsLike = (shape: ReadonlyArray<number>): fc.Arbitrary<unknown> => {
  const size = shape.reduce((product, length) => product * length, 1)
  const number = fc.double({ noNaN: true, min: -3.4e38, max: 3.4e38 })
  const odd = fc.constantFrom<ReadonlyArray<unknown>>(
    [Number.NaN],
    [Infinity],
    [3.4028235677973362e38],
    [3.4028235677973366e38],
    [-1e39],
    [null],
    ["1"],
    [true],
    [{}],
    [[]],
    [[1]],
    [1, 2],
    [], // prettier-ignore
  )
  return fc
    .record({
      numbers: fc.array(number, { minLength: size, maxLength: size }),
      isNested: fc.boolean(),
      at: fc.nat(size - 1),
      other: fc.oneof(fc.constant(null), odd),
      whole: fc.oneof(
        { weight: 20, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constantFrom(null, 1, "x", {}, []) },
      ),
    })
    .map(({ numbers, isNested, at, other, whole }) => {
      if (whole !== undefined) return whole
      let value: ReadonlyArray<unknown> = numbers
      if (other !== null) value = value.toSpliced(at, 1, ...other)
      const inner = isNested ? shape.slice(1) : []
      for (const length of inner.toReversed())
        value = Array.from({ length: Math.ceil(value.length / length) }, (_, row) =>
          value.slice(row * length, (row + 1) * length),
        )
      return value
    })
}

describe("a policy exported for workers", () => {
  it("normalises observations, and acts to the bit as the training's own policy", () =>
    withFolder(async (folder) => {
      const { folder: worker, episodes } = await exported(folder, "ppo-continuous")
      const act = await policyIn(worker)
      for (const { observation, action } of episodes.flat().slice(0, 1000)) {
        assert.deepStrictEqual(act(observation).action, action)
      }
      // It reads numbers as float32, as the env gives them, whatever array they are in.
      const [{ observation, action }] = episodes[0]
      assert.deepStrictEqual(act(Float32Array.from(observation)).action, action)
      assert.deepStrictEqual(act(Float64Array.from(observation)).action, action)
      // Everything that it exports has a type that TypeScript can import.
      const declarations = readFileSync(join(worker, "policy.d.ts"), "utf8")
      for (const name of Object.keys(await import(pathToFileURL(join(worker, "policy.js")).href)))
        assert.match(declarations, new RegExp(`^export declare (const|class) ${name}\\b`, "m"))
    }))

  it("refuses what is no observation in one line, and acts as before afterwards", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const { folder: worker, episodes } = await exported(folder, "lstm")
      const act = await policyIn(worker)
      const [{ observation }] = episodes[0]
      const before = act(observation)
      const size = before.memory?.length ?? 0
      assert.isAbove(size, 0)
      const wrong: ReadonlyArray<readonly [unknown, unknown, string]> = [
        [undefined, undefined, "observation: expected 4 numbers, found undefined"],
        [[1, 2, 3], undefined, "observation: expected 4 numbers, found 3 elements"],
        [[[1, 2, 3, 4]], undefined, "observation: expected 4 numbers, found 1 element"],
        ["1234", undefined, 'observation: expected 4 numbers, found "1234"'],
        [new DataView(new ArrayBuffer(4)), undefined, "observation: expected 4 numbers, found an object"],
        [[1, Number.NaN, 3, 4], undefined, "observation[1]: expected a finite number, found NaN"],
        [[1, 2, 3, Infinity], undefined, "observation[3]: expected a finite number, found Infinity"],
        [[1, 2, 1e39, 4], undefined, "observation[2]: expected a finite number, found 1e+39"],
        [[null, 2, 3, 4], undefined, "observation[0]: expected a finite number, found null"],
        [[1, 2, 3, 4n], undefined, "observation[3]: expected a finite number, found 4"],
        [[1, 2, [3], 4], undefined, "observation[2]: expected a finite number, found 1 element"],
        [observation, [1], `memory: expected ${size} numbers, found 1 element`],
        [observation, Array.from({ length: size }, () => "0"), 'memory[0]: expected a finite number, found "0"'],
      ]
      for (const [one, memory, message] of wrong)
        assert.strictEqual(
          complaint(() => act(one, memory)),
          message,
        )
      assert.deepStrictEqual(act(observation), before)
      assert.deepStrictEqual(act(observation, null), before)
      assert.notDeepEqual(act(observation, before.memory), before)
    }),
  )

  it(
    "accepts the observations that the Schema and the JSON Schema of the card accept, and no others",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        // CartPole's observations have the shape [4], Breakout's [4, 10, 10].
        for (const kind of ["ppo", "dqn"] as const) {
          const { folder: worker } = await exported(folder, kind)
          const { card, observation } = await import(pathToFileURL(join(worker, "policy.js")).href)
          const { shape, schema } = card.observation
          const isObservation = Schema.is(observationSchema(shape))
          const isValid = new Ajv2020({ strict: false }).compile(schema)
          const drawn = { accepted: 0, refused: 0 }
          fc.assert(
            fc.property(observationsLike(shape), (value) => {
              const checked = observation["~standard"].validate(value)
              const isAccepted = checked.issues === undefined
              drawn[isAccepted ? "accepted" : "refused"]++
              assert.strictEqual(isAccepted, isObservation(value))
              // JSON has no NaN and no infinity.
              if (isAccepted) assert.isTrue(isValid(value))
              else assert.isFalse(isValid(JSON.parse(JSON.stringify(value) ?? "null")))
              if (isAccepted) return assert.deepStrictEqual(checked.value, [value].flat(Infinity))
              const [{ message, path }] = checked.issues
              assert.isTrue(message.startsWith(`observation${path.map((index: number) => `[${index}]`).join("")}: `))
            }),
            { numRuns: kind === "ppo" ? tries(4000) : 300 },
          )
          assert.isAbove(Math.min(drawn.accepted, drawn.refused), 50)
        }
      }),
  )

  it("is written to a new folder only, with the name of its run", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program(""))
      const run = resultOf(
        await effect(["run", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]),
      ).runDir
      const out = join(folder, "worker")
      assert.strictEqual((await effect(["export", run, "--to", "worker", "--out", out])).code, 0)
      const again = await effect(["export", run, "--to", "worker", "--out", out])
      assert.strictEqual(again.code, 2)
      assert.include(again.stderr, "expected a new or empty folder")
      const { stdout } = await effect(["export", run, "--to", "worker"], folder)
      assert.strictEqual(stdout, "train-CartPole-v1-ppo-1-worker\n")
      const named = join(folder, stdout.trim())
      assert.match(readFileSync(join(named, "wrangler.toml"), "utf8"), /^name = "train-cartpole-v1-ppo-1"\n/)
      assert.deepStrictEqual(readFileSync(join(named, "policy.wasm")), readFileSync(join(out, "policy.wasm")))
    }),
  )
})
