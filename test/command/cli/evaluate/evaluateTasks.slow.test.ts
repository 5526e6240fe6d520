import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { serve } from "../../../agents/lm/server.ts"
import { capitalOf, evaluation, told } from "../capitals.ts"
import { effect, resultOf, start, until, withFolder, write } from "../effect.ts"

describe("effect eval tasks.yaml", () => {
  it.live(
    "goes on after Ctrl-C and after a kill, asks nobody again what was answered, and ends as if it hadn't stopped",
    () =>
      Effect.gen(function* () {
        const server = yield* serve({ say: capitalOf, fault: () => ({ kind: "slow", milliseconds: 60 }) })
        const lm = { model: "vllm:capitals", base_url: server.url, api_key: "none" }
        const agent = { type: "memoryless_agent", lm_config: lm }
        yield* Effect.promise(() =>
          withFolder(async (folder) => {
            const said = { agents: { one: agent, two: agent }, repeats: 3, workers: 2 }
            const file = write(
              folder,
              "tasks.yaml",
              evaluation({ ...said, output: { results_dir: join(folder, "out") } }),
            )
            const whole = resultOf(told(await effect(["eval", file, "--quiet", "--json"])))
            assert.strictEqual(server.asked.length, 36)
            const journal = (): string => {
              const all = globSync(`${folder}/out/*/played.jsonl`)
              return all.length === 0 ? "" : readFileSync(all[0], "utf8")
            }
            const over = (): number => Math.max(0, journal().split("\n").length - 2)
            let resume: ReadonlyArray<string> = []
            let kept = 0
            for (const signal of ["SIGINT", "SIGKILL", "SIGINT"] as const) {
              const { child, ended } = start(["eval", file, "--quiet", ...resume])
              await until(() => over() >= kept + 4)
              child.kill(signal)
              const outcome = await ended
              if (signal === "SIGINT") {
                assert.strictEqual(outcome.code, 130, outcome.stderr)
                assert.match(outcome.stderr, /interrupted; resume with: npx effect eval .*tasks\.yaml --resume .*out/)
              }
              kept = over()
              assert.isBelow(kept, 36)
              resume = ["--resume", "latest"]
            }
            const before = server.asked.length
            const again = resultOf(told(await effect(["eval", file, "--quiet", "--json", "--resume", "latest"])))
            assert.strictEqual(server.asked.length - before, 36 - kept)
            assert.deepInclude(again, { digest: whole.digest, episodes: 36, failed: 0 })
            assert.deepStrictEqual(again["report"], whole["report"])
            const rollouts = (run: string): string =>
              readFileSync(join(run, "rollouts/val/1_seen_episodes_rollouts.jsonl"), "utf8")
            assert.strictEqual(rollouts(again.runDir), rollouts(whole.runDir))
            const found = await effect(["runs", join(folder, "out"), "--where", "environment=qa", "--json"])
            assert.strictEqual(told(found).stdout.trim().split("\n").length, 2)
            // Both evaluations have ended. `latest` is not used, because the clock may have been set back meanwhile.
            const finished = resultOf(told(await effect(["eval", file, "--quiet", "--json", "--resume", again.runDir])))
            assert.deepStrictEqual(finished, again)
            const nothing = await effect(["eval", file, "--resume", "latest", "--name", "other"])
            assert.strictEqual(nothing.code, 2)
            assert.include(nothing.stderr, "--resume latest: there is no evaluation named other in ")
          }),
        )
      }).pipe(Effect.scoped),
  )
})
