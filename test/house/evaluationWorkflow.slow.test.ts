import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse, stringify } from "yaml"
import { root, withFolder, write } from "../command/cli/effect.ts"
import { launcher } from "../command/cli/launcher.ts"

interface Step {
  readonly id?: string
  readonly name?: string
  readonly if?: string
  readonly uses?: string
  readonly run?: string
  readonly shell?: string
  readonly with?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  readonly "working-directory"?: string
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string; readonly required?: boolean }>>
  readonly outputs: Readonly<Record<string, { readonly value: string }>>
  readonly runs: { readonly using: string; readonly steps: ReadonlyArray<Step> }
}

const action: Action = parse(readFileSync(join(root, "action.yml"), "utf8"))
const [, example] = /```yaml\n(name: evaluation[^]*?)```/.exec(readFileSync(join(root, "docs/agents/ci.md"), "utf8")) ?? [] // prettier-ignore
const workflow: { readonly jobs: { readonly evaluate: { readonly steps: ReadonlyArray<Step> } } } = parse(example)

/** The state of a job: what its expressions and its caches hold. */
interface Job {
  readonly folder: string
  readonly ref: string
  readonly cache: string
  readonly values: Map<string, string>
  readonly log: Array<string>
  failed: boolean
}

/** Replaces the expressions in a text; fails for one that has no value. */
const filled = (text: string, values: ReadonlyMap<string, string>): string =>
  text.replace(/\$\{\{ (.+?) \}\}/g, (_, expression) => {
    const value = values.get(expression)
    assert.isDefined(value, `${expression} has no value`)
    return value ?? ""
  })

const isRun = (condition: string | undefined, job: Job): boolean => {
  if (condition === undefined) return !job.failed
  if (condition === "always()") return true
  assert.strictEqual(condition, "github.ref == 'refs/heads/main'")
  return !job.failed && job.ref === "refs/heads/main"
}

/** Runs a script as GitHub's runner does, and returns what it wrote to `GITHUB_OUTPUT`. */
const runScript = (step: Step, job: Job, values: ReadonlyMap<string, string>): ReadonlyMap<string, string> => {
  assert.notInclude(step.run, "${{", "an expression in a script could become a part of it")
  const output = write(job.folder, "output.txt", "")
  const own = Object.fromEntries(
    Object.entries(step.env ?? {}).map(([name, text]) => [name, filled(String(text), values)]),
  )
  const cwd = join(job.folder, filled(step["working-directory"] ?? ".", values))
  const { status, stdout, stderr } = spawnSync("bash", ["--noprofile", "--norc", "-eo", "pipefail", "-c", step.run ?? ""], {
    cwd,
    encoding: "utf8",
    env: {
      PATH: `${job.folder}/bin:${process.env.PATH ?? ""}`,
      HOME: job.folder,
      RUNNER_TEMP: job.folder,
      GITHUB_OUTPUT: output,
      GITHUB_STEP_SUMMARY: join(job.folder, "summary.md"),
      ...own,
    },
  }) // prettier-ignore
  job.log.push(stdout, stderr)
  if (status !== 0) job.failed = true
  const pairs = readFileSync(output, "utf8").trim().split("\n").filter((line) => line !== "") // prettier-ignore
  return new Map(pairs.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]))
}

/** Runs the steps of this repository's action. */
const runAction = (step: Step, job: Job): ReadonlyMap<string, string> => {
  const given = step.with ?? {}
  assert.deepEqual(Object.keys(given).filter((name) => !(name in action.inputs)), []) // prettier-ignore
  const values = new Map(
    Object.entries(action.inputs).map(([name, input]) => {
      const value = given[name] ?? input.default
      assert.isDefined(value, `${name} is required`)
      return [`inputs.${name}`, String(value)]
    }),
  )
  assert.strictEqual(action.runs.using, "composite")
  for (const one of action.runs.steps) {
    assert.strictEqual(one.shell, "bash")
    for (const [name, value] of runScript(one, job, values)) values.set(`steps.${one.id}.outputs.${name}`, value)
  }
  const outputs = Object.entries(action.outputs).map(([name, { value }]) => {
    const known = new Map([...value.matchAll(/\$\{\{ (.+?) \}\}/g)].map(([, key]) => [key, values.get(key) ?? ""]))
    return [name, filled(value, known)] as const
  })
  return new Map(outputs)
}

/** Does what an action of GitHub's does for the job. */
const runOther = (step: Step, { folder, cache }: Job): void => {
  const name = step.uses?.split("@")[0]
  const place = join(folder, String(step.with?.["path"] ?? ""))
  if (name === "actions/cache/restore") {
    if (existsSync(cache)) cpSync(cache, place, { recursive: true })
  } else if (name === "actions/cache/save") {
    rmSync(cache, { recursive: true, force: true })
    cpSync(place, cache, { recursive: true })
  } else assert.include(["actions/checkout", "actions/setup-node", "actions/upload-artifact"], name)
}

/** Runs the workflow of the docs step by step, with an evaluation of an agent that knows some of the answers. */
const runWorkflow = (folder: string, { ref, knows }: { readonly ref: string; readonly knows: number }): Job => {
  const values = new Map([["github.sha", "0123"], ["secrets.OPENAI_API_KEY", "none"]]) // prettier-ignore
  const job: Job = { folder, ref, cache: join(folder, "cache"), values, log: [], failed: false }
  for (const name of ["baseline", "results", "evaluation.xml", "summary.md"]) rmSync(join(folder, name), { recursive: true, force: true }) // prettier-ignore
  const letters = [..."abcdefghijkl"]
  const rules = letters.slice(0, knows).map((one) => `RULE: [After ${one}?] -> ${one}!`).join("; ") // prettier-ignore
  const items = letters.map((one) => ({ id: one, question: `After ${one}?`, answer: `${one}!` }))
  const agents = { mine: { type: "memoryless_agent", system_prompt: rules, lm_config: { model: "scripted:reader" } } }
  write(folder, "tasks.yaml", stringify({ dataset: { items, id_field: "id" }, agents, scorers: ["exact"] }))
  for (const step of workflow.jobs.evaluate.steps) {
    if (!isRun(step.if, job)) continue
    if (step.run !== undefined) runScript(step, job, values)
    else if (step.uses?.startsWith("OWNER/effect-rl@") === true) {
      for (const [name, value] of runAction(step, job)) values.set(`steps.${step.id}.outputs.${name}`, value)
    } else runOther(step, job)
    for (const text of Object.values(step.with ?? {})) filled(String(text), values)
  }
  return job
}

describe("the workflow of docs/agents/ci.md", () => {
  it("has steps that pass, keep a baseline, and fail for a low score and for a regression", () =>
    withFolder(async (folder) => {
      mkdirSync(join(folder, "bin"))
      const program = (name: string, text: string) => chmodSync(write(join(folder, "bin"), name, `#!/bin/bash\n${text}\n`), 0o755) // prettier-ignore
      // The project is this one, which is installed already.
      program("npm", '[ "$*" = ci ]')
      const { bin, env } = launcher({})
      const options = JSON.stringify(env.NODE_OPTIONS ?? "")
      program("npx", `[ "$1" = effect ] && shift && NODE_OPTIONS=${options} exec "${process.execPath}" "${bin}" "$@"`)
      program("node", `exec "${process.execPath}" "$@"`)

      const first = runWorkflow(folder, { ref: "refs/heads/main", knows: 12 })
      assert.isFalse(first.failed, first.log.join("\n"))
      assert.include(first.log.join(""), "::notice::there is no baseline at baseline yet, so nothing is compared")
      assert.match(first.log.join(""), /^mine +exact +1\.000 /m)
      assert.match(readFileSync(join(folder, "summary.md"), "utf8"), /^### Evaluation tasks: passed\n/)
      assert.isTrue(existsSync(join(first.cache, "episodes.jsonl")))

      const same = runWorkflow(folder, { ref: "refs/pull/1/merge", knows: 12 })
      assert.isFalse(same.failed, same.log.join("\n"))
      assert.include(readFileSync(join(folder, "summary.md"), "utf8"), "| mine − mine \\(before\\) | exact |")

      const worse = runWorkflow(folder, { ref: "refs/pull/2/merge", knows: 3 })
      assert.isTrue(worse.failed)
      assert.match(worse.log.join(""), /^effect: 2 of 2 gates failed: mine: exact 0\.25 .*; mine: exact -0\.75 /m)
      assert.match(readFileSync(join(folder, "summary.md"), "utf8"), /^### Evaluation tasks: 2 of 2 gates failed\n/)
      assert.match(readFileSync(join(folder, "evaluation.xml"), "utf8"), /<testsuites name="tasks" tests="14" failures="11" errors="0"/) // prettier-ignore
      // The evaluation is uploaded all the same.
      assert.isTrue(existsSync(join(folder, worse.values.get("steps.evaluate.outputs.run") ?? "none")))
    }))
})
