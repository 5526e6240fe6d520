import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { fakeMlflow } from "../../rl/export/fakeMlflow.ts"
import { effect, withFolder } from "./effect.ts"
import { honestRun } from "./trust/hostile.ts"
import { withVariables } from "./withVariables.ts"

const secret = "the user's secret"

/** Replaces a file or folder of a run by a link. */
const linkInstead = (path: string, target: string): void => {
  rmSync(path, { recursive: true, force: true })
  symlinkSync(target, path)
}

/** Exports a run to a server of MLflow, and returns the outcome and all texts that the server got as files. */
const exported = (run: string, folder: string) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* fakeMlflow({})
        yield* withVariables({ MLFLOW_TRACKING_URI: server.url })
        const outcome = yield* Effect.promise(() => effect(["export", run, "--to", "mlflow"], folder))
        return { ...outcome, files: server.runs.flatMap(({ files }) => [...files.values()].map(String)) }
      }),
    ),
  )

describe("a run of somebody else with links in its folder", () => {
  it("makes no command publish a file to which they lead, or list without end", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const run = await honestRun(folder, "training")
      const at = (...parts: ReadonlyArray<string>): string => join(folder, run, ...parts)
      for (const name of ["a", "b"]) symlinkSync(".", at(name))
      for (const format of ["onnx", "h"]) {
        const done = await effect(["export", run, "--to", format, "--out", `policy.${format}`], folder)
        assert.strictEqual(done.code, 0, done.stderr)
      }
      assert.strictEqual((await effect(["push", run, "--to", "honest"], folder)).code, 0)
      writeFileSync(join(folder, "secret"), secret)
      renameSync(at("metrics.json"), join(folder, "metrics.json"))
      for (const file of ["metrics.json", "git.json"]) {
        linkInstead(at(file), join(folder, "secret"))
        const { code, stderr, files } = await exported(run, folder)
        assert.notInclude(files.join("\n"), secret)
        assert.match(stderr, new RegExp(`${file} is a link, .*: remove the link, or replace it`))
        assert.notStrictEqual(code, 0)
        rmSync(at(file))
      }
      const checkpoint = readdirSync(at("checkpoints")).find((name) => name.startsWith("step_")) ?? ""
      for (const file of [`checkpoints/${checkpoint}/policy.onnx`, "checkpoints", "config.yaml"]) {
        const target = file === "checkpoints" ? join(folder, "elsewhere") : join(folder, "secret")
        if (file === "checkpoints") renameSync(at(file), target)
        linkInstead(at(file), target)
        const { stderr } = await effect(["push", run, "--to", "model"], folder)
        assert.match(stderr, new RegExp(`${file} is a link, .*: remove the link, or replace it`))
        assert.isFalse(existsSync(join(folder, "model")))
      }
    }),
  )

  it("is not resumed, and nothing is changed", () =>
    withFolder(async (folder) => {
      const run = await honestRun(folder, "training")
      const resuming = () => effect(["run", "training.yaml", "--resume", run, "--total-steps", "128"], folder)
      const users = join(folder, "users")
      mkdirSync(users)
      for (const name of ["run.log", "system.jsonl", "logs.tfevents", "scores", "checkpoints"]) {
        const path = join(folder, run, name)
        const target = join(users, name)
        const isFolder = name === "scores" || name === "checkpoints"
        if (isFolder) mkdirSync(join(target, ".notes.tmp"), { recursive: true })
        else writeFileSync(target, "the user's")
        if (existsSync(path)) renameSync(path, `${path}.aside`)
        symlinkSync(target, path)
        const { code, stderr } = await resuming()
        assert.notStrictEqual(code, 0)
        assert.include(stderr, `${join(run, name)} is a link, `)
        assert.isTrue(isFolder ? existsSync(join(target, ".notes.tmp")) : readFileSync(target, "utf8") === "the user's")
        rmSync(path)
        if (existsSync(`${path}.aside`)) renameSync(`${path}.aside`, path)
      }
      const { code, stderr } = await resuming()
      assert.strictEqual(code, 0, stderr)
    }))
})
