import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { evaluation, told } from "./capitals.ts"
import { effect, resultOf, withFolder, write } from "./effect.ts"

const json = (file: string) => JSON.parse(readFileSync(file, "utf8"))
const writeJson = (file: string, value: unknown): void => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, JSON.stringify(value))
}
const metrics = (folder: string, run: string) => json(join(folder, run, "metrics.json"))
/** The means of all agents and scorers in the report of a run. */
const meansOf = (folder: string, run: string) => {
  const agents: ReadonlyArray<{ agent: string; scores: ReadonlyArray<{ scorer: string; mean: number }> }> = metrics(
    folder,
    run,
  ).report.agents
  return new Map(agents.map(({ agent, scores }) => [agent, scores.map(({ scorer, mean }) => [scorer, mean])]))
}
const imported = async (folder: string, ...args: ReadonlyArray<string>) =>
  resultOf(await effect(["import", ...args, "--json"], folder))

describe("effect import", () => {
  it("reads logs of Inspect that effect export wrote: the same scores, compared task by task", () =>
    withFolder(async (folder) => {
      const { runDir } = resultOf(
        await effect(["eval", write(folder, "tasks.yaml", evaluation()), "--quiet", "--json"], folder),
      )
      told(await effect(["export", runDir, "--to", "inspect", "--out", "logs"], folder))
      const again = await imported(folder, "logs", "--name", "again")
      assert.deepEqual(meansOf(folder, again.runDir), meansOf(folder, runDir))
      const { episodes, failed } = metrics(folder, again.runDir)
      assert.deepEqual([episodes, failed], [24, 0])

      const compared = JSON.parse(told(await effect(["eval", runDir, again.runDir, "--json"], folder)).stdout)
      assert.deepEqual(
        compared.comparisons.map(({ tasks, difference }: { tasks: number; difference: number }) => [tasks, difference]),
        compared.comparisons.map(() => [6, 0]),
      )
      assert.isAbove(compared.comparisons.length, 1)
      told(await effect(["eval", again.runDir, "--fail-under", "exact=0.1", "--agent", "reads"], folder))
      // A run that was imported is a run: it can be exported, too.
      told(await effect(["export", again.runDir, "--to", "atif", "--out", "trajectories"], folder))
    }))

  it("reads trajectories that effect export wrote: the same rows", () =>
    withFolder(async (folder) => {
      const { runDir } = resultOf(
        await effect(["eval", write(folder, "tasks.yaml", evaluation()), "--quiet", "--json"], folder),
      )
      told(await effect(["export", runDir, "--to", "atif", "--out", "trajectories"], folder))
      const again = await imported(folder, "trajectories")
      const rows = (run: string) =>
        readFileSync(join(folder, run, "episodes.jsonl"), "utf8")
          .trim()
          .split("\n")
          .toSorted()
      assert.deepEqual(rows(again.runDir), rows(runDir))
    }))

  it("reads the trials of a job of Harbor with their tasks, rewards and failures", () =>
    withFolder(async (folder) => {
      const trajectory = (message: string) => ({
        schema_version: "ATIF-v1.6",
        session_id: "s",
        agent: { name: "terminus-2", version: "2", model_name: "small" },
        steps: [
          { step_id: 1, source: "user", message: "Say hello." },
          { step_id: 2, source: "agent", message, metrics: { prompt_tokens: 10, completion_tokens: 5 } },
        ],
      })
      const trial = (name: string, result: object) => {
        writeJson(join(folder, "job", name, "agent", "trajectory.json"), trajectory(name))
        writeJson(join(folder, "job", name, "agent", "trajectory.cont-1.json"), trajectory(name))
        writeJson(join(folder, "job", name, "result.json"), result)
      }
      const agent_info = { name: "terminus-2", version: "2" }
      trial("hello__1", {
        task_name: "hello",
        agent_info,
        verifier_result: { rewards: { reward: 1 } },
        exception_info: null,
      })
      trial("hello__2", {
        task_name: "hello",
        agent_info,
        verifier_result: { rewards: { reward: 0 } },
        exception_info: null,
      })
      trial("bye__1", {
        task_name: "bye",
        agent_info,
        verifier_result: null,
        exception_info: { exception_type: "AgentTimeoutError", exception_message: "too slow" },
        started_at: "2026-01-01T00:00:00Z",
        finished_at: "2026-01-01T00:00:02Z",
      })
      writeJson(join(folder, "job", "config.json"), { agents: [] })
      const { runDir } = await imported(folder, "job")
      const { report, episodes, failed, failures } = metrics(folder, runDir)
      assert.deepEqual([episodes, failed], [3, 1])
      assert.deepEqual(failures, [{ reason: "AgentTimeoutError: too slow", count: 1 }])
      const [{ agent, scores }] = report.agents
      assert.deepEqual([agent, scores[0].scorer, scores[0].mean, scores[0].tasks], ["terminus-2", "reward", 0.5, 1])
      const rows = readFileSync(join(folder, runDir, "episodes.jsonl"), "utf8")
        .trim()
        .split("\n")
        .map((row) => JSON.parse(row))
      assert.deepEqual(
        rows.map(({ env_id, repeat, input_tokens, duration_ms }) => [env_id, repeat, input_tokens, duration_ms]),
        [
          ["bye", 0, 10, 2000],
          ["hello", 0, 10, 0],
          ["hello", 1, 10, 0],
        ],
      )
      assert.deepEqual(json(join(folder, runDir, "config.json")).kind, "evaluation")

      // Each exported episode has its task, scores and conversation.
      for (const to of ["atif", "inspect"]) {
        told(await effect(["export", runDir, "--to", to, "--out", to], folder))
        const again = await imported(folder, to, "--name", `from-${to}`)
        const read = readFileSync(join(folder, again.runDir, "episodes.jsonl"), "utf8")
          .trim()
          .split("\n")
          .map((row) => JSON.parse(row))
        assert.sameDeepMembers(
          read
            .filter(({ error }) => error === null)
            .map(({ env_id, answer, scores, calls }) => [env_id, answer, scores, calls]),
          [
            ["hello", "hello__1", { reward: 1 }, 1],
            ["hello", "hello__2", { reward: 0 }, 1],
          ],
        )
      }
    }))

  it("tells apart tasks, solvers and repeated samples of several logs", () =>
    withFolder(async (folder) => {
      const log = (name: string, task: string, solver: string, value: string) =>
        writeJson(join(folder, "logs", `${name}.json`), {
          version: 2,
          status: "success",
          eval: { task, solver, model: "some/model" },
          samples: [{ id: 1, epoch: 1, input: "?", target: "", messages: [], scores: { match: { value } } }],
        })
      log("a", "sums", "generate", "C")
      log("b", "sums", "react", "I")
      log("c", "sums", "react", "C")
      log("d", "words", "react", "I")
      const { runDir } = await imported(folder, "logs")
      const rows = readFileSync(join(folder, runDir, "episodes.jsonl"), "utf8")
        .trim()
        .split("\n")
      assert.deepEqual(
        rows.map((row) => JSON.parse(row)).map(({ agent, env_id, task, repeat }) => [agent, env_id, task, repeat]),
        [
          ["some/model generate", "sums/1", 0, 0],
          ["some/model react", "sums/1", 0, 0],
          ["some/model react", "sums/1", 0, 1],
          ["some/model react", "words/1", 1, 0],
        ],
      )
      assert.deepEqual(meansOf(folder, runDir).get("some/model react")?.[0], ["match", 0.25])
    }))

  it("refuses other files with their names", () =>
    withFolder(async (folder) => {
      const problem = async (...args: ReadonlyArray<string>) => {
        const { code, stderr } = await effect(["import", ...args], folder)
        assert.strictEqual(code, 2, stderr)
        return stderr
      }
      assert.include(await problem("nowhere.eval"), "nowhere.eval: there is no such file or folder")
      writeJson(join(folder, "other.json"), { version: 1 })
      assert.include(await problem("other.json"), "other.json: expected a log of Inspect")
      mkdirSync(join(folder, "empty"))
      assert.include(await problem("empty"), "expected a log of Inspect (.eval or .json) with samples")
      writeJson(join(folder, "wrong.json"), { schema_version: "ATIF-v1.7", agent: { name: "a" }, steps: [] })
      assert.include(await problem("wrong.json"), "wrong.json: agent.version: ")
      const trajectory = (name: string) => ({ schema_version: "ATIF-v1.7", agent: { name, version: "1" }, steps: [] })
      for (let at = 0; at < 201; at++) writeJson(join(folder, "agents", `${at}.json`), trajectory(`agent ${at}`))
      assert.include(await problem("agents"), "expected at most 200 agents, found more")
      const scores = Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`scorer ${at}`, { value: 1 }]))
      const samples = [{ id: 1, epoch: 1, input: "", target: "", messages: [], scores }]
      const log = { version: 2, status: "success", eval: { task: "t", model: "m" }, samples }
      writeJson(join(folder, "scorers.json"), log)
      assert.include(await problem("scorers.json"), "expected at most 200 scorers, found more")
      writeFileSync(join(folder, "half.eval"), "PK\u0003\u0004half")
      assert.include(await problem("half.eval"), "half.eval: ")
    }))
})
