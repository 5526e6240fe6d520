import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll } from "vitest"
import * as A2c from "../../src/algorithms/rollouts/A2c.ts"
import * as CartPole from "../../src/env/classic/CartPole.ts"
import { fileOfAlgorithm } from "../../scripts/settings.ts"
import { root } from "../cli/effect.ts"
import { keep } from "../train/inMemory.ts"

/** A project of somebody else's: a folder in which `effect-rl` and `effect` are installed. */
const project = mkdtempSync(join(tmpdir(), "effect-own-algorithm-"))
afterAll(() => rmSync(project, { recursive: true, force: true }))

const source = (name: string): string => readFileSync(join(root, fileOfAlgorithm(name)), "utf8")

/**
 * `import * as Graph from "../graph/ops.ts"` becomes `import { Graph } from "effect-rl"`, and
 * `import { ConfigError } from "../config/Config.ts"` becomes `import { ConfigError } from "effect-rl"`.
 */
const withPublicImports = (text: string): string =>
  text
    .replace(/^import \* as (\w+) from "\.\.\/[^"]+"$/gm, 'import { $1 } from "effect-rl"')
    .replace(/^(import \{[^}]+\}) from "\.\.\/[^"]+"$/gm, '$1 from "effect-rl"')

const write = (path: string, text: string): void => writeFileSync(join(project, path), text)

const copied = ["A2c", "Ddqn", "Dqn", "Sac", "Td3"]

describe("algorithms copied into a project of its own, with their imports taken from effect-rl", () => {
  mkdirSync(join(project, "node_modules"))
  symlinkSync(root, join(project, "node_modules/effect-rl"))
  symlinkSync(join(root, "node_modules/effect"), join(project, "node_modules/effect"))
  write("package.json", '{ "type": "module" }')
  const compilerOptions = { typeRoots: [join(root, "node_modules/@types")] }
  write("tsconfig.json", JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.ts"] }))
  for (const name of copied) write(`My${name}.ts`, withPublicImports(source(name)))

  it("import nothing else of ours", () => {
    for (const name of copied) {
      const imports = [...withPublicImports(source(name)).matchAll(/ from "([^"]+)"/g)].map(([, from]) => from)
      assert.sameMembers([...new Set(imports)], ["effect", "effect-rl"])
    }
  })

  it("compile", () => {
    const tsc = join(root, "node_modules/.bin/tsc")
    const { stdout, status } = spawnSync(tsc, ["--noEmit", "-p", project], { cwd: project, encoding: "utf8" })
    assert.deepStrictEqual([status, stdout], [0, ""])
  })

  it.effect("train to the same bits as the library's: A2C", () =>
    Effect.gen(function* () {
      const copy: typeof A2c = yield* Effect.promise(() => import(pathToFileURL(join(project, "MyA2c.ts")).href))
      assert.notStrictEqual(copy.make, A2c.make)
      const digests = yield* Effect.forEach([A2c, copy], ({ make }) =>
        Effect.map(keep({ env: CartPole.env, algorithm: make({ hidden: [8] }), totalSteps: 400 }), ({ result }) => {
          return result.digest
        }),
      )
      assert.strictEqual(digests[0], digests[1])
    }),
  )
})
