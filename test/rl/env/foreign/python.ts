/** Runs Python for the tests of envs in Python processes. */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"

/** The Python with Gymnasium and PettingZoo: EFFECT_RL_PYTHON, or python3. */
export const python = process.env.EFFECT_RL_PYTHON ?? "python3"

/** Tells whether Python has these modules, and prints a line if it does not. */
export const has = (...modules: ReadonlyArray<string>): boolean => {
  const isThere = spawnSync(python, ["-c", `import ${modules.join(", ")}`]).status === 0
  if (!isThere) console.log(`skipped: ${python} has no ${modules.join(", ")}; EFFECT_RL_PYTHON can name another Python`)
  return isThere
}

/** Runs a script of this folder, which reads JSON and prints JSON. */
export const reference = (script: string, input: unknown): unknown => {
  const { stdout, stderr } = spawnSync(python, [fileURLToPath(new URL(script, import.meta.url))], {
    input: JSON.stringify(input),
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  })
  assert.notStrictEqual(stdout, "", stderr)
  return JSON.parse(stdout)
}
