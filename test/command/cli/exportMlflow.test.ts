import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { fakeMlflow } from "../../rl/export/fakeMlflow.ts"
import { effect, program, resultOf, withFolder, write } from "./effect.ts"
import { withVariables } from "./withVariables.ts"

/** Runs with a server and these variables of the environment. */
const withServer = <A>(
  variables: Readonly<Record<string, string>>,
  options: Parameters<typeof fakeMlflow>[0],
  body: (server: Effect.Success<ReturnType<typeof fakeMlflow>>) => Promise<A>,
): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* fakeMlflow(options)
        yield* withVariables({ MLFLOW_TRACKING_URI: server.url, ...variables })
        return yield* Effect.promise(() => body(server))
      }),
    ),
  )

describe("effect export --to mlflow", () => {
  it("sends settings, metrics, tags and files as MLflow's API takes them", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const settings = "validation: { everySteps: 1024, episodes: 4 }, checkpoint: { everySteps: 1024 }"
      const { runDir, digest } = resultOf(
        await effect(["run", write(folder, "train.ts", program(settings)), "--quiet", "--json"], folder),
      )
      await withServer({ MLFLOW_TRACKING_TOKEN: "t0ken" }, { authorization: "Bearer t0ken" }, async (server) => {
        const sent = await effect(["export", runDir, "--to", "mlflow"], folder)
        assert.strictEqual(sent.code, 0, sent.stderr)
        const [run] = server.runs
        assert.strictEqual(sent.stdout, `${server.url}/#/experiments/1/runs/${run.id}\n`)
        assert.deepEqual([...server.experiments], [["train", "1"]])
        assert.deepEqual(
          [run.status, run.params.get("algorithm.name"), run.params.get("num_envs")],
          ["FINISHED", "ppo", "4"],
        )
        assert.deepEqual([run.tags.get("effect_rl.env"), run.tags.get("effect_rl.digest")], ["CartPole-v1", digest])
        const scores = run.metrics.filter(({ key }) => key === "validation/score")
        const validations = JSON.parse(readFileSync(join(folder, runDir, "return.json"), "utf8"))
        assert.deepEqual(
          scores.map(({ step, value }) => [step, value]),
          validations.map(({ step, returns_mean: mean }: { step: number; returns_mean: number }) => [
            step,
            Math.fround(mean),
          ]),
        )
        assert.isAbove(run.metrics.filter(({ key }) => key === "losses/policy_loss").length, 4)
        const policy = readFileSync(join(folder, runDir, "checkpoints", "latest", "policy.onnx"))
        assert.deepEqual(run.files.get("policy.onnx"), policy)
        assert.deepEqual(run.files.get("config.yaml"), readFileSync(join(folder, runDir, "config.yaml")))
        // A second export is another run of the same experiment.
        assert.strictEqual((await effect(["export", runDir, "--to", "mlflow", "--step", "1024"], folder)).code, 0)
        assert.deepEqual([server.runs.length, server.experiments.size], [2, 1])
        assert.notDeepEqual(server.runs[1].files.get("policy.onnx"), policy)
      })
      const refused = async (variables: Readonly<Record<string, string>>, options: Parameters<typeof fakeMlflow>[0]) =>
        withServer(variables, options, async (server) => {
          const { code, stderr } = await effect(["export", runDir, "--to", "mlflow"], folder)
          return { code, message: stderr.replaceAll(server.url, "SERVER"), runs: server.runs }
        })
      const wrongToken = await refused({ MLFLOW_TRACKING_TOKEN: "wr0ng" }, { authorization: "Bearer t0ken" })
      assert.strictEqual(wrongToken.code, 1)
      assert.strictEqual(
        wrongToken.message,
        `sending ${resolve(folder, runDir)} to SERVER\neffect: --to mlflow: SERVER/api/2.0/mlflow/experiments/get-by-name answered 401: bad header <redacted>; check MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD\n`,
      )
      const basic = { MLFLOW_TRACKING_USERNAME: "ada", MLFLOW_TRACKING_PASSWORD: "s3cr3t" }
      const wrongPassword = await refused(basic, { authorization: "Bearer t0ken" })
      assert.include(wrongPassword.message, "answered 401: bad header <redacted>;")
      const deleted = await refused({ MLFLOW_EXPERIMENT_NAME: "old" }, { deleted: ["old"] })
      assert.include(deleted.message, `the experiment "old" is deleted`)
      const broken = await refused({}, { failsAt: "mlflow-artifacts" })
      assert.include(broken.message, "answered 400: no space left")
      assert.deepEqual(
        broken.runs.map(({ status }) => status),
        ["FAILED"],
      )
      // Nothing listens on port 1.
      const unreachable = await refused({ MLFLOW_TRACKING_URI: "http://127.0.0.1:1" }, {})
      assert.strictEqual(unreachable.code, 1)
      assert.match(
        unreachable.message,
        /^sending \S+ to http:\/\/127.0.0.1:1\neffect: --to mlflow: no answer after 3 attempts; last failure: \S+ cannot be reached: .*; check that the server runs, and its address, MLFLOW_TRACKING_URI\n$/,
      )
      const elsewhere = await refused({ MLFLOW_TRACKING_URI: "http://me:secret@host" }, {})
      assert.strictEqual(elsewhere.code, 2)
      assert.notInclude(elsewhere.message, "secret")
      const missing = await refused({ MLFLOW_TRACKING_URI: "" }, {})
      assert.strictEqual(missing.code, 2)
      assert.include(missing.message, "set MLFLOW_TRACKING_URI to the address of the server")
    }),
  )
})
