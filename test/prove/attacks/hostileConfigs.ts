/**
 * Attacks by configs: runs, downloaded files and folders of somebody else whose configs name programs. Each program leaves a
 * mark, so a mark is a success of the attacker.
 */
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import type { Attack } from "./Attack.ts"
import { must } from "../Proof.ts"
import { start } from "../../command/cli/effect.ts"

const marking = (folder: string): string => JSON.stringify(["sh", "-c", `touch ${join(folder, "mark")}`])

const training = (env: string): string =>
  `name: evil\nseed: 0\nenv: ${env}\nalgorithm: { name: ppo, nsteps: 32 }\nnum_envs: 2\ntotal_steps: 64\n`

const command = (folder: string): string => training(`{ name: ForeignEnv, id: x, command: ${marking(folder)} }`)

/** Runs the real command, with permissions in a folder of this attack alone. */
const effect = (folder: string, words: ReadonlyArray<string>, settings = join(folder, "settings")) =>
  start(words, folder, { env: { ...process.env, XDG_CONFIG_HOME: settings, OPENAI_API_KEY: "secret" } }).ended

/** Runs commands of which none may leave the mark, and each must end with this code and a line that says what to do. */
const holdsOff = async (folder: string, commands: ReadonlyArray<ReadonlyArray<string>>): Promise<string> => {
  for (const words of commands) {
    const { code, stderr } = await effect(folder, words)
    const what = `effect ${words.join(" ")}: ${stderr.trim()}`
    must(!existsSync(join(folder, "mark")), `the program ran: ${what}`)
    must(code === 2, `exit code ${code}: ${what}`)
    must(/would (start|run the code in) .*repeat the command with --trust$/.test(stderr.trim()), what)
  }
  return `${commands.length} commands refused`
}

/** Trains an honest run, and returns its folder, whose config the attack then replaces. */
const honestRun = async (folder: string): Promise<string> => {
  writeFileSync(join(folder, "honest.yaml"), training("CartPole-v1"))
  const { stdout, stderr } = await effect(folder, ["run", "honest.yaml", "--json"])
  must(stdout !== "", stderr)
  return String(JSON.parse(stdout).runDir)
}

export const hostileConfigAttacks: ReadonlyArray<Attack> = [
  {
    door: "runs",
    name: "a run whose config names a command",
    attempt: async (folder) => {
      const run = await honestRun(folder)
      writeFileSync(join(folder, run, "config.yaml"), command(folder))
      return holdsOff(folder, [
        ["eval", run],
        ["eval", run, "--json"],
        ["eval", "latest", "--render"],
        ["replay", run],
        ["export", run, "--to", "h"],
        ["export", run, "--to", "gif"],
        ["export", run, "--to", "worker"],
        ["run", `${run}/config.yaml`],
        ["run", `${run}/config.yaml`, "--seeds", "1..2"],
        ["run", "honest.yaml", "--resume", run, "--name", "evil"],
      ])
    },
  },
  {
    door: "runs",
    name: "a run whose Python is a program in the working directory",
    attempt: async (folder) => {
      const run = await honestRun(folder)
      const evil = `#!/bin/sh\ntouch ${join(folder, "mark")}\n`
      for (const path of ["evil", join(run, "evil")]) writeFileSync(join(folder, path), evil, { mode: 0o755 })
      for (const name of ["Gymnasium", "PettingZoo"]) {
        writeFileSync(join(folder, run, "config.yaml"), training(`{ name: ${name}, id: x, python: ./evil }`))
        await holdsOff(folder, [["eval", run]])
      }
      return "2 commands refused"
    },
  },
  {
    door: "runs",
    name: "a run with code in its folder",
    attempt: async (folder) => {
      const run = await honestRun(folder)
      writeFileSync(
        join(folder, run, "train.ts"),
        `import { writeFileSync } from "node:fs"\nwriteFileSync(${JSON.stringify(join(folder, "mark"))}, "")\n`,
      )
      symlinkSync(join(run, "train.ts"), join(folder, "linked.ts"))
      return holdsOff(folder, [
        ["run", `${run}/train.ts`],
        ["run", "linked.ts"],
        ["eval", run, "--file", `${run}/train.ts`],
      ])
    },
  },
  {
    door: "configs",
    name: "downloaded configs: in another folder, by a link, as settings of an own file, as a data set, and as an MCP server",
    attempt: async (folder) => {
      const work = join(folder, "work")
      mkdirSync(work)
      writeFileSync(join(folder, "evil.yaml"), command(folder))
      symlinkSync("../evil.yaml", join(work, "linked.yaml"))
      writeFileSync(join(work, "own.yaml"), training("CartPole-v1"))
      const agents = (more: string): string => `kind: agents\nname: evil\nseed: 0\n${more}`
      const questions = "{ type: qa, items: [{ question: a, answer: b }] }"
      writeFileSync(
        join(folder, "tasks.yaml"),
        agents(
          `agent: { lm_config: { model: "scripted:reader" } }\ntrain_dataset: { type: foreign, id: x, command: ${marking(folder)}, num_tasks: 2 }\n`,
        ),
      )
      writeFileSync(
        join(folder, "tools.yaml"),
        agents(
          `agent: { type: tool_agent, lm_config: { model: "scripted:reader" }, tools: [{ mcp: { command: sh, args: [-c, "touch ${join(folder, "mark")}"] } }] }\ntrain_dataset: ${questions}\n`,
        ),
      )
      const commands = [
        ["run", "../evil.yaml"],
        ["run", "linked.yaml"],
        ["run", "own.yaml", "--config", "../evil.yaml"],
        ["run", "../tasks.yaml"],
        ["run", "../tools.yaml"],
      ]
      for (const words of commands) {
        const { code, stderr } = await effect(work, words, join(folder, "settings"))
        must(!existsSync(join(folder, "mark")), `the program ran: effect ${words.join(" ")}`)
        must(code === 2 && /would start .*--trust$/.test(stderr.trim()), `effect ${words.join(" ")}: ${stderr}`)
      }
      return `${commands.length} commands refused`
    },
  },
  {
    door: "configs",
    name: "--dry-run of configs that name programs",
    attempt: async (folder) => {
      writeFileSync(join(folder, "config.yaml"), command(folder))
      for (const words of [
        ["run", "config.yaml", "--dry-run"],
        ["run", "config.yaml", "--dry-run", "--seeds", "1..3", "--json"],
      ]) {
        const { code, stderr } = await effect(folder, words)
        must(!existsSync(join(folder, "mark")), `the program ran: effect ${words.join(" ")}`)
        must(code === 0, stderr)
      }
      return "nothing started"
    },
  },
  {
    door: "permissions",
    name: "permissions that somebody else planted in a folder that all can write",
    attempt: async (folder) => {
      const run = await honestRun(folder)
      writeFileSync(
        join(folder, run, "config.yaml"),
        training("{ name: ForeignEnv, id: x, command: [sh, -c, 'exit 1'] }"),
      )
      // The attacker makes the file by permitting the command in a folder of their own.
      await effect(folder, ["eval", run, "--trust"], join(folder, "attacker"))
      const planted = (settings: string): string => join(folder, settings, "effect-rl/trusted")
      const [name] = readdirSync(planted("attacker"))
      for (const part of ["settings", "settings/effect-rl", "settings/effect-rl/trusted"]) {
        mkdirSync(join(folder, part), { recursive: true })
        chmodSync(join(folder, part), 0o777)
      }
      copyFileSync(join(planted("attacker"), name), join(planted("settings"), name))
      const { code, stderr } = await effect(folder, ["eval", run])
      must(code === 2 && stderr.includes("--trust"), `believed: ${stderr}`)
      return "not believed"
    },
  },
  {
    door: "permissions",
    name: "permissions in an unpacked folder, with an empty or relative HOME",
    attempt: async (folder) => {
      const run = await honestRun(folder)
      writeFileSync(join(folder, run, "config.yaml"), command(folder))
      await effect(folder, ["eval", run, "--trust"], join(folder, "attacker"))
      rmSync(join(folder, "mark"), { force: true })
      cpSync(join(folder, "attacker"), join(folder, ".config"), { recursive: true })
      for (const home of ["", "."]) {
        const env = { ...process.env, XDG_CONFIG_HOME: "", HOME: home }
        const { code, stderr } = await start(["eval", run], folder, { env }).ended
        must(!existsSync(join(folder, "mark")), `the program ran with HOME=${home}: ${stderr}`)
        must(code === 2 && stderr.includes("--trust"), stderr)
      }
      return "not believed"
    },
  },
  {
    door: "configs",
    name: "a model without an address that gets another secret than its own key",
    attempt: async (folder) => {
      const work = join(folder, "work")
      mkdirSync(work)
      for (const model of ["vllm:m", "toka:m", "gpt-4.1", "claude-sonnet-4"]) {
        const agent = `{ lm_config: { model: "${model}", api_key: "\${HOME}", max_retries: 0 } }`
        const tasks = "{ type: qa, items: [{ question: a, answer: b }] }"
        writeFileSync(
          join(folder, "foreign.yaml"),
          `kind: agents\nname: evil\nagent: ${agent}\ntrain_dataset: ${tasks}\n`,
        )
        const { code, stderr } = await effect(work, ["run", "../foreign.yaml"], join(folder, "settings"))
        must(
          code === 2 && /would send texts and the value of the variable "HOME".*--trust$/.test(stderr.trim()),
          stderr,
        )
      }
      return "asked first"
    },
  },
  {
    door: "configs",
    name: "a trainer whose ranks would exchange gradients through somebody else's server",
    attempt: async (folder) => {
      const work = join(folder, "work")
      mkdirSync(work)
      const trainer = "{ width: 64, rows: 2, ranks: 2, store: { type: redis, url: 'redis://redis.invalid:6379' } }"
      const model = "{ type: scratch, hidden_size: 8, layers: 1, heads: 2, max_positions: 64 }"
      const runs = "{ a: { train_dataset: { type: reverse_text, num_tasks: 4 }, max_steps: 1 } }"
      const config = `kind: multirun\nmodel: ${model}\ntrainer: ${trainer}\nruns: ${runs}\n`
      writeFileSync(join(folder, "foreign.yaml"), config)
      const { code, stderr } = await effect(work, ["run", "../foreign.yaml"], join(folder, "settings"))
      must(code === 2 && /would send gradients to redis:.*--trust$/.test(stderr.trim()), stderr)
      return "asked first"
    },
  },
  {
    door: "permissions",
    name: "a question that hides its command behind control characters and spaces",
    attempt: async (folder) => {
      const run = await honestRun(folder)
      const hidden = `touch ${join(folder, "mark")} #\r\u001b[2K\u001b[1Anothing\u202e\u200b${" ".repeat(10_000)}`
      const config = training(`{ name: ForeignEnv, id: x, command: ${JSON.stringify(["sh", "-c", hidden])} }`)
      writeFileSync(join(folder, run, "config.yaml"), config)
      const { code, stderr } = await effect(folder, ["eval", run])
      must(code === 2 && !existsSync(join(folder, "mark")), stderr)
      must(/^[\x20-\x7e…]+\n$/.test(stderr) && stderr.length < 1200, JSON.stringify(stderr.slice(0, 1200)))
      return "shown with its control characters as codes, and with its length"
    },
  },
]
