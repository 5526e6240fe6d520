// Runs the examples of this folder against a model on this machine, which calls the tool `add` and says its result: all of
// them, or those whose names are the arguments.
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { serve } from "../../test/agents/lm/server.ts"
import { mailModels } from "../../test/agents/prompts/mailModels.ts"

const here = import.meta.dirname

/** What the model says: a call of `add` if there is such a tool, and the sum otherwise or when it knows it. */
const say = ({
  messages,
  tools,
}: {
  readonly messages: ReadonlyArray<{ role: string; content?: unknown }>
  readonly tools?: unknown
}) => {
  const last = messages.at(-1)
  const text = JSON.stringify(messages.findLast(({ role }) => role === "user")?.content)
  const [, a = "0", b = "0"] = /(-?\d+) \+ (-?\d+)/.exec(text) ?? []
  if (last?.role === "tool") return /-?\d+(?=\D*$)/.exec(JSON.stringify(last.content))?.[0] ?? ""
  const calls = [{ id: "call_1", name: "add", arguments: JSON.stringify({ a: Number(a), b: Number(b) }) }]
  return Array.isArray(tools) && tools.length > 0
    ? { content: null, toolCalls: calls, finish: "tool_calls" }
    : String(Number(a) + Number(b))
}

/** Evaluates one example. Returns its mean score, and the number of calls of the model for each question. */
const evaluate = async (file: string, baseUrl: string) => {
  const results = mkdtempSync(join(tmpdir(), "framework-"))
  try {
    const set = [`agent.lm_config.base_url=${baseUrl}`, "agent.lm_config.model=local", "name=check"]
    const flags = ["--results-dir", results, "--trust", ...set.flatMap((one) => ["--set", one])]
    const program = join(here, "../../bin/effect.js")
    await promisify(execFile)(process.execPath, [program, "eval", file, ...flags], { cwd: here })
    const found = readdirSync(results, { recursive: true, encoding: "utf8" }).find((path) =>
      path.endsWith("episodes.jsonl"),
    )
    const folder = join(results, dirname(found ?? ""))
    const rows = readFileSync(join(folder, "episodes.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    return rows.map(({ scores, calls }) => `${scores.exact} in ${calls}`)
  } finally {
    rmSync(results, { recursive: true })
  }
}

const hasOpenAi = async (): Promise<boolean> =>
  promisify(execFile)("python3", ["-c", "import openai"]).then(
    () => true,
    () => false,
  )

const program = Effect.gen(function* () {
  const server = yield* serve({ say })
  const chosen = process.argv.slice(2)
  const all = readdirSync(here).filter((name) =>
    /^(?!check|questions|mcp-server|train|mails-agent|improve|compare).*\.(ts|yaml)$/.test(name),
  )
  for (const file of all.filter((name) => chosen.length === 0 || chosen.includes(name))) {
    if (file === "python-openai.yaml" && !(yield* Effect.promise(hasOpenAi))) {
      console.log(`${file}: left out, because Python has no package openai`)
      continue
    }
    const scores = yield* Effect.tryPromise(() => evaluate(file, server.url))
    console.log(`${file}: ${scores.join(", ")} calls`)
    if (!scores.every((score) => score.startsWith("1 ")))
      return yield* Effect.fail(new Error(`${file}: expected three right answers`))
  }
})

/** Improves the instructions of the agent that sorts mails, and evaluates it with them. */
const improves = Effect.gen(function* () {
  const { url } = yield* serve(mailModels)
  const results = mkdtempSync(join(tmpdir(), "framework-"))
  const effect = (command: string, file: string, settings: ReadonlyArray<string>) => {
    const flags = ["--results-dir", results, "--json", ...settings.flatMap((one) => ["--set", one])]
    const program = join(here, "../../bin/effect.js")
    return Effect.promise(() =>
      promisify(execFile)(process.execPath, [program, command, file, ...flags], { cwd: here }),
    )
  }
  yield* effect("run", "improve.ts", [
    `agent.lm_config.base_url=${url}/v1`,
    `learner.reflection_lm_config.base_url=${url}`,
    "learner.max_metric_calls=300",
  ])
  const { stdout } = yield* effect(
    "eval",
    "compare.ts",
    ["before", "after"].map((agent) => `agents.${agent}.lm_config.base_url=${url}/v1`),
  )
  const { report } = JSON.parse(stdout)
  const [{ difference, low, high }] = report.comparisons
  console.log(
    `improve.ts, compare.ts: after − before ${[difference, low, high].map((value) => value.toFixed(2)).join(", ")}`,
  )
  rmSync(results, { recursive: true })
  if (low <= 0) return yield* Effect.fail(new Error("improve.ts: expected better instructions"))
})

await Effect.runPromise(Effect.scoped(Effect.andThen(program, process.argv.length > 2 ? Effect.void : improves)))
