/** The real command in a process of its own: killed, resumed, and ended by Ctrl-C. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import OpenAI from "openai"
import { assert, describe, it } from "vitest"
import { serve } from "../../../agents/lm/server.ts"
import { runsIn } from "../crash.ts"
import { start, until, withFolder } from "../effect.ts"

/** Starts `effect gateway`, and waits for its address. */
const begin = async (args: ReadonlyArray<string>, folder: string) => {
  const { child, ended } = start(["gateway", "--port", "0", "--json", ...args], folder)
  let stdout = ""
  child.stdout?.on("data", (chunk) => (stdout += String(chunk)))
  let isOver = false
  void ended.then(() => (isOver = true))
  await until(() => stdout.includes("\n") || isOver)
  if (isOver) throw new Error((await ended).stderr)
  const { url }: { readonly url: string } = JSON.parse(stdout.split("\n")[0])
  const ask = (id: string) =>
    new OpenAI({ baseURL: `${url}/sessions/${id}/v1`, apiKey: "none" }).chat.completions.create({
      model: "any",
      messages: [{ role: "user", content: `I am ${id}.` }],
    })
  return { child, ended, ask, url }
}

const idsIn = (run: string): ReadonlyArray<string> =>
  readFileSync(join(run, "rollouts/train/rollouts.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).id)

describe("effect gateway", () => {
  it("loses no call that was recorded when it is killed, and ends at Ctrl-C", () =>
    withFolder((folder) =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const server = yield* serve({ say: ({ messages }) => `You said ${messages.length}.` })
            yield* Effect.promise(async () => {
              const first = await begin(["--upstream", server.url, "--model", "m"], folder)
              await Promise.all(["a", "b", "c"].map(first.ask))
              await fetch(`${first.url}/sessions/b/end`, {
                method: "POST",
                headers: { "content-type": "application/json" },
                body: "{}",
              })
              const [run] = runsIn(join(folder, "results"))
              assert.deepStrictEqual(idsIn(run), ["b"])
              first.child.kill("SIGKILL")
              assert.strictEqual((await first.ended).signal, "SIGKILL")
              const log = join(folder, "alerts")
              const second = await begin(["--resume", run, "--alert", `ended: cat > ${log}`], folder)
              assert.deepStrictEqual(idsIn(run).toSorted(), ["a", "b", "c"])
              await second.ask("d")
              second.child.kill("SIGINT")
              const { code, stdout } = await second.ended
              assert.strictEqual(code, 0)
              const result = JSON.parse(stdout.trim().split("\n").at(-1) ?? "")
              assert.deepStrictEqual([result.episodes, result.steps, result.failedCalls], [4, 4, 0])
              assert.strictEqual(idsIn(run).at(-1), "d")
              const alert = JSON.parse(readFileSync(log, "utf8"))
              assert.deepInclude(alert, { event: "finished", name: "gateway", step: 4 })
            })
          }),
        ),
      ),
    ))
})
