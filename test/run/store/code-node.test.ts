import { mkdirSync, readFileSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { codeOf, differingFrom, withProgram } from "../../../src/run/store/code-node.ts"
import { effect, program, resultOf, withFolder, write } from "../../command/cli/effect.ts"

const put = (folder: string, name: string, text: string): string => {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  return write(folder, name, text)
}
const pathsOf = (file: string) => codeOf(file).files.map(({ path }) => path)

describe("the code of a training", () => {
  it("is its file and the local files that it imports, also in a circle, but no packages", () =>
    withFolder(async (folder) => {
      put(folder, "node_modules/a/index.ts", "")
      put(folder, "elsewhere/node_modules/b/index.ts", "")
      symlinkSync(join(folder, "elsewhere/node_modules/b/index.ts"), join(folder, "linked.ts"))
      put(folder, "lib/env.ts", `import type { A } from "../types.ts"\nexport * from './rewards.ts'`)
      put(folder, "lib/rewards.ts", `import "../runs/train.ts"`)
      put(folder, "types.ts", "")
      const lazy = `const late = () => import("../types.ts")`
      const packages = `import "effect-rl"\nimport "../node_modules/a/index.ts"\nimport "../linked.ts"\nimport "./none.ts"`
      const file = put(folder, "runs/train.ts", `import { env } from "../lib/env.ts?v=1"\n${lazy}\n${packages}`)
      assert.deepEqual(pathsOf(file), ["runs/train.ts", "lib/env.ts", "types.ts", "lib/rewards.ts"])
      assert.deepEqual(codeOf(file).leftOut, 0)
    }))

  it("includes what it requires, also without an ending, and nothing that it only reads", () =>
    withFolder(async (folder) => {
      for (const name of ["lib.cjs", "later.js", "parts/index.ts", ".env", "key.json"]) put(folder, name, "")
      const requires = `createRequire(import.meta.url)("./lib.cjs")\nrequire("./later")\nimport "./parts"`
      const reads = `readFileSync("./.env")\nnew URL("./key.json", import.meta.url)`
      const file = put(folder, "train.ts", `${requires}\n${reads}`)
      assert.deepEqual(pathsOf(file), ["train.ts", "lib.cjs", "later.js", "parts/index.ts"])
    }))

  it("is bounded in its size", () =>
    withFolder(async (folder) => {
      put(folder, "large.ts", `//${" ".repeat(1 << 20)}`)
      const many = Array.from(
        { length: 250 },
        (_, index) => `import "./${put(folder, `f${index}.ts`, "").slice(folder.length + 1)}"`,
      )
      const file = put(folder, "train.ts", [`import "./large.ts"`, ...many].join("\n"))
      const { files, leftOut } = codeOf(file)
      assert.deepEqual([files.length, leftOut, files[0].path], [200, 52, "train.ts"])
    }))

  it("counts as changed if git does not track it", () =>
    withFolder(async (folder) => {
      const code = codeOf(put(folder, "train.ts", ""))
      const clean = { commit: "a", dirty: false, diff_sha256: null }
      const [{ source }] = code.files
      assert.deepInclude(withProgram(clean, code, new Set([source])), { dirty: false })
      const untracked = withProgram(clean, code, new Set())
      assert.isTrue(untracked.dirty)
      assert.deepEqual(
        untracked.code?.map(({ path, tracked }) => [path, tracked]),
        [["train.ts", false]],
      )
    }))

  it("is saved with a run, and a replay says which files differ", () =>
    withFolder(async (folder) => {
      put(folder, "lib/speed.ts", "export const steps = 32")
      const text = program("").replace("nsteps: 32", "nsteps: steps")
      const file = put(folder, "train.ts", `import { steps } from "./lib/speed.ts"\n${text}`)
      const { runDir } = resultOf(await effect(["run", "train.ts", "--quiet", "--json"], folder))
      const run = join(folder, runDir)
      assert.strictEqual(readFileSync(join(run, "code/train.ts"), "utf8"), readFileSync(file, "utf8"))
      assert.isTrue(readFileSync(join(run, "code/lib/speed.ts")).length > 0)
      const git = JSON.parse(readFileSync(join(run, "git.json"), "utf8"))
      assert.isTrue(git.dirty)
      assert.deepEqual(
        git.code.map(({ path, tracked }: { readonly path: string; readonly tracked: boolean }) => [path, tracked]),
        [["train.ts", false], ["lib/speed.ts", false]], // prettier-ignore
      )
      const note =
        "code/ has a copy of train.ts and of 1 file that it imports; git does not track train.ts, lib/speed.ts"
      assert.include(readFileSync(join(run, "run.log"), "utf8"), note)
      const replay = () => effect(["replay", runDir, "--file", "train.ts", "--quiet"], folder)
      assert.notInclude((await replay()).stderr, "differs")
      put(folder, "lib/speed.ts", "export const steps = 32 // the same")
      const { code, stderr } = await replay()
      assert.deepEqual([code, stderr.trim().endsWith("/code: lib/speed.ts")], [0, true], stderr)
      assert.include(stderr, "the code differs from that of the run in ")
      assert.deepEqual(differingFrom(join(run, "nowhere"), codeOf(file)), ["train.ts", "lib/speed.ts"])
    }))
})
