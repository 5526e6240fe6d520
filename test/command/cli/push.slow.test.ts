import { execFileSync, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import { backend, platform } from "../../../src/node.ts"
import * as Policy from "../../../src/rl/policy/Policy.ts"
import { effect, program, resultOf, root, withFolder, write } from "./effect.ts"

/** The Python with ONNX Runtime: EFFECT_RL_PYTHON, or python3. */
const python = process.env.EFFECT_RL_PYTHON ?? "python3"
const hasOnnx = spawnSync(python, ["-c", "import numpy, onnxruntime"]).status === 0
if (!hasOnnx) console.log(`skipped: ${python} has no onnxruntime; EFFECT_RL_PYTHON can name another Python`)

const short = ["--set", "total_steps=2048", "--set", "validation.every_steps=0", "--quiet", "--json"]

const cases = [
  { title: "one list of numbers", source: program(""), observation: [0, 0, 0, 0] },
  { title: "a memory", source: program("algorithm: Ppo.make({ lstm: 8 })"), observation: [0, 0, 0, 0] },
  {
    title: "parts and a mask",
    source: readFileSync(join(root, "examples/own-parts/spaces.ts"), "utf8"),
    observation: { map: new Float32Array(48), letter: [0, 0] },
  },
]

describe("the card of a pushed policy", () => {
  for (const { title, source, observation } of cases) {
    it.skipIf(!hasOnnx)(`has Python code that acts without this library: ${title}`, () =>
      withFolder(async (folder) => {
        const { runDir } = resultOf(await effect(["run", write(folder, "train.ts", source), ...short], folder))
        const pushed = await effect(["push", runDir, "--to", "model"], folder)
        assert.strictEqual(pushed.code, 0, pushed.stderr)
        const model = join(folder, "model")
        const [, code = ""] = /```py\n([^]*?)```/.exec(readFileSync(join(model, "README.md"), "utf8")) ?? []
        const printed = execFileSync(python, ["-c", code], { cwd: model, encoding: "utf8" })
        const acting = Effect.flatMap(Policy.load(model), (policy) => policy.act(observation))
        const { action } = await Effect.runPromise(
          Effect.scoped(acting).pipe(Effect.provide(Layer.merge(backend("wasm"), platform))),
        )
        assert.deepEqual(Number(printed.replace(/[[\].\s]/g, "")), action, printed)
      }),
    )
  }
})
