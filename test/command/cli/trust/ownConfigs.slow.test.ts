import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { effect, resultOf, root, withFolder, write } from "../effect.ts"
import { withVariables } from "../withVariables.ts"

const corridor = JSON.stringify([process.execPath, join(root, "examples/foreign-envs/corridor.mjs")])

const config = (more = ""): string =>
  `env: { name: ForeignEnv, id: corridor, command: ${corridor}${more} }\nalgorithm: { name: ppo, nsteps: 32 }\nnum_envs: 2\ntotal_steps: 256\nvalidation: { every_steps: 128, episodes: 2 }\n`

describe("the user's own config", () => {
  it("starts its program, and so do all commands on its runs, without a question", () =>
    withFolder(async (folder) => {
      write(folder, "corridor.yaml", config())
      const trained = await effect(["run", "corridor.yaml", "--json"], folder)
      const { runDir } = resultOf(trained)
      for (const words of [
        ["eval", "latest"],
        ["replay", "latest"],
        ["export", "latest", "--to", "h"],
        ["run", join(runDir, "config.yaml"), "--quiet"],
        ["run", "corridor.yaml", "--resume", runDir, "--total-steps", "512"],
        ["run", "corridor.yaml", "--seeds", "1..2"],
        ["run", join(runDir, "config.yaml"), "--seeds", "1..2", "--set", "env.processes=2"],
      ]) {
        const { code, stderr } = await effect(words, folder)
        assert.strictEqual(code, 0, `effect ${words.join(" ")}: ${stderr}`)
      }
      // Another program in the same run is another question.
      const saved = readFileSync(join(folder, runDir, "config.yaml"), "utf8")
      writeFileSync(join(folder, runDir, "config.yaml"), saved.replace("corridor.mjs", "other.mjs"))
      const { code, stderr } = await effect(["eval", runDir], folder)
      assert.strictEqual(code, 2)
      assert.match(stderr, /would start .*other\.mjs, which you have not permitted before/)
    }))

  it("that lies in another folder is asked about, and starts with --trust, also in a sweep", () =>
    withFolder(async (folder) => {
      const file = write(folder, "corridor.yaml", config(", options: { length: 7 }"))
      await withFolder(async (elsewhere) => {
        for (const words of [
          ["run", file],
          ["run", file, "--seeds", "1..2"],
        ]) {
          const { code, stderr } = await effect(words, elsewhere)
          assert.strictEqual(code, 2)
          assert.match(stderr, /corridor\.yaml:1: env\.command: it would start .*--trust/)
        }
        const { code, stderr } = await effect(["run", file, "--seeds", "1..2", "--trust"], elsewhere)
        assert.strictEqual(code, 0, stderr)
      })
    }))
})

describe("the program of a config", () => {
  it.effect("gets no variable of the environment but the common ones, and those that the config names", () =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* withVariables({ SECRET_KEY: "secret", MUJOCO_GL: "egl" })
        yield* Effect.promise(() =>
          withFolder(async (folder) => {
            // The program fails, and the error quotes the last line of its standard error.
            const telling = (more: string): string =>
              `env: { name: ForeignEnv, id: x, command: [sh, -c, 'echo "<$SECRET_KEY|$MUJOCO_GL|$HOME>" >&2; exit 1']${more} }\nalgorithm: ppo\ntotal_steps: 64\n`
            write(folder, "tell.yaml", telling(""))
            const { stderr } = await effect(["run", "tell.yaml"], folder)
            assert.include(stderr, `<||${process.env.HOME ?? ""}>`)
            write(folder, "tell.yaml", telling(", variables: [MUJOCO_GL]"))
            const named = await effect(["run", "tell.yaml"], folder)
            assert.include(named.stderr, `<|egl|${process.env.HOME ?? ""}>`)
            write(folder, "tell.yaml", telling(", variables: [NO_SUCH_VARIABLE]"))
            const missing = await effect(["run", "tell.yaml"], folder)
            assert.match(missing.stderr, /variables: the environment variable NO_SUCH_VARIABLE is not set/)
          }),
        )
      }),
    ),
  )
})
