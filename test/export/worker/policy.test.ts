import { readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "vitest"
import { effect, program, resultOf, withFolder, write } from "../../cli/effect.ts"
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
    }))

  it("refuses what is no observation in one line, and acts as before afterwards", () =>
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
    }))

  it("is written to a new folder only, with the name of its run", () =>
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
    }))
})
