import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { ownerName } from "../../../src/run/store/owner-node.ts"
import { runIn } from "../../rl/export/wandbLog.ts"
import { effect, program, resultOf, withFolder, write } from "./effect.ts"
import { withVariables } from "./withVariables.ts"

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()

/** Exports with these variables of the environment. */
const exportWith = (variables: Readonly<Record<string, string>>, args: ReadonlyArray<string>, folder: string) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.andThen(
        withVariables(variables),
        Effect.promise(() => effect(["export", ...args], folder)),
      ),
    ),
  )

describe("effect export --to wandb", () => {
  it("writes settings, metrics, results and files of a run, and the same bytes again", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const settings = "validation: { everySteps: 1024, episodes: 4 }, checkpoint: { everySteps: 1024 }"
      const { runDir, digest } = resultOf(
        await effect(["run", write(folder, "train.ts", program(settings)), "--quiet", "--json"], folder),
      )
      const exported = await effect(["export", runDir, "--to", "wandb"], folder)
      assert.deepEqual([exported.code, exported.stderr], [0, ""])
      const [, time, id] = /^wandb\/offline-run-(\d{8}_\d{6})-([0-9a-f]{16})\n$/.exec(exported.stdout) ?? []
      const at = join(folder, "wandb", `offline-run-${time}-${id}`)
      const names = ["config.yaml", "metrics.json", "policy.onnx", "return.json"]
      assert.includeMembers([...filesIn(at)], [`run-${id}.wandb`, ...names.map((name) => `files/run/${name}`)])
      const log = runIn(readFileSync(join(at, `run-${id}.wandb`)))
      assert.deepEqual([log.run[1], log.run[3]], [id, "train"])
      assert.deepEqual(log.tags, ["CartPole-v1", "ppo"])
      assert.deepEqual([JSON.parse(log.config.algorithm).name, log.config.num_envs], ["ppo", "4"])
      assert.deepEqual([log.exit[1], log.summary["effect_rl/digest"]], [[0], JSON.stringify(digest)])
      const validations = JSON.parse(readFileSync(join(folder, runDir, "return.json"), "utf8"))
      assert.deepEqual(
        log.history.flatMap(({ step, items }) =>
          "validation/score" in items ? [[step, Number(items["validation/score"])]] : [],
        ),
        validations.map(({ step, returns_mean: mean }: { step: number; returns_mean: number }) => [
          step,
          Math.fround(mean),
        ]),
      )
      assert.isAbove(log.history.filter(({ items }) => "losses/policy_loss" in items).length, 4)
      const latest = join(folder, runDir, "checkpoints", "latest", "policy.onnx")
      assert.deepEqual(readFileSync(join(at, "files/run/policy.onnx")), readFileSync(latest))

      const again = await effect(["export", runDir, "--to", "wandb", "--out", "again"], folder)
      assert.strictEqual(again.stdout, "again\n")
      assert.deepEqual(filesIn(join(folder, "again")), filesIn(at))
      for (const name of filesIn(at)) {
        assert.deepEqual(readFileSync(join(folder, "again", name)), readFileSync(join(at, name)), name)
      }
      const earlier = await effect(["export", runDir, "--to", "wandb", "--out", "earlier", "--step", "1024"], folder)
      assert.strictEqual(earlier.code, 0, earlier.stderr)
      assert.notDeepEqual(readFileSync(join(folder, "earlier/files/run/policy.onnx")), readFileSync(latest))

      const twice = await effect(["export", runDir, "--to", "wandb"], folder)
      assert.deepEqual(
        [twice.code, twice.stderr],
        [
          2,
          `effect: --out ${at.slice(folder.length + 1)}: expected a new or empty folder; remove it or name another one\n`,
        ],
      )
      const variables = { WANDB_PROJECT: "cars", WANDB_RUN_ID: "mine", WANDB_TAGS: "a, b", WANDB_ENTITY: "ada" }
      const labelled = await exportWith(variables, [runDir, "--to", "wandb"], folder)
      assert.strictEqual(labelled.stdout, `wandb/offline-run-${time}-mine\n`)
      const { run, tags } = runIn(readFileSync(join(folder, labelled.stdout.trim(), "run-mine.wandb")))
      assert.deepEqual([run[1], run[2], run[3], tags], ["mine", "ada", "cars", ["a", "b"]])
      const refused = await exportWith({ WANDB_PROJECT: "a/b" }, [runDir, "--to", "wandb", "--out", "refused"], folder)
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, `effect: --to wandb: project "a/b": expected 1 to 128 characters`)
      const longId = await exportWith({ WANDB_RUN_ID: "a".repeat(129) }, [runDir, "--to", "wandb"], folder)
      assert.strictEqual(longId.code, 2)
      assert.include(longId.stderr, ": expected 1 to 128 letters, digits, underscores, dots and dashes\n")
      assert.notInclude(readdirSync(folder), "refused")

      // A run without its last file has not finished.
      const [files, lock] = [join(folder, runDir), join(folder, runDir, "run.lock")]
      rmSync(join(files, "return.json"))
      const stopped = await effect(["export", runDir, "--to", "wandb", "--out", "stopped"], folder)
      assert.strictEqual(stopped.code, 0, stopped.stderr)
      assert.deepEqual(runIn(readFileSync(join(folder, "stopped", `run-${id}.wandb`))).exit[1], [255])
      writeFileSync(lock, ownerName(process.ppid))
      const running = await effect(["export", runDir, "--to", "wandb", "--out", "running"], folder)
      assert.deepEqual(
        [running.code, running.stderr],
        [2, "effect: --to wandb: expected a run that has ended, found one that is still running\n"],
      )
      rmSync(lock)
      rmSync(join(files, "logs.tfevents"))
      const silent = await effect(["export", runDir, "--to", "wandb", "--out", "silent"], folder)
      assert.strictEqual(silent.code, 2)
      assert.include(silent.stderr, "effect: --to wandb: expected the run's metrics in ")
    }),
  )
})
