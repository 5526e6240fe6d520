/** Configs and runs of somebody else, whose programs leave a mark if they are started. */
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { effect } from "../effect.ts"

/** The file that a program of a hostile config makes. */
export const markIn = (folder: string): string => join(folder, "mark")

export const isMarked = (folder: string): boolean => existsSync(markIn(folder))

/** A command that leaves the mark. */
const marking = (folder: string): string => JSON.stringify(["sh", "-c", `touch ${markIn(folder)}`])

const training = (env: string): string =>
  `name: evil\nseed: 0\nenv: ${env}\nalgorithm: { name: ppo, nsteps: 32 }\nnum_envs: 2\ntotal_steps: 64\n`

const questions = '{ type: qa, items: [{ question: "a?", answer: b }, { question: "c?", answer: d }] }'

const agents = (agent: string, dataset: string): string =>
  `kind: agents\nname: evil\nseed: 0\nagent: ${agent}\ntrain_dataset: ${dataset}\n`

/** Configs that start nothing. */
export const honestConfigs = {
  training: training("CartPole-v1"),
  agents: agents('{ lm_config: { model: "scripted:reader" } }', questions),
}

/** The configs that start a program, by what starts it. */
export const hostileConfigs = (folder: string) => ({
  training: {
    "an env's command": training(`{ name: ForeignEnv, id: x, command: ${marking(folder)} }`),
    "an env inside a wrapper": training(
      `{ name: ScaleReward, factor: 2, env: { name: ForeignEnv, id: x, command: ${marking(folder)} } }`,
    ),
    "Gymnasium's python": training("{ name: Gymnasium, id: CartPole-v1, python: ./evil }"),
    "PettingZoo's python": training("{ name: PettingZoo, id: classic/tictactoe_v3, python: ./evil }"),
  },
  agents: {
    "a data set's command": agents(
      '{ lm_config: { model: "scripted:reader" } }',
      `{ type: foreign, id: x, command: ${marking(folder)}, num_tasks: 2 }`,
    ),
    "an agent's MCP server": agents(
      `{ type: tool_agent, lm_config: { model: "scripted:reader" }, tools: [{ mcp: { command: sh, args: [-c, "touch ${markIn(folder)}"] } }] }`,
      questions,
    ),
  },
})

/** Trains an honest run in the folder, and returns its path in it. */
export const honestRun = async (folder: string, kind: keyof typeof honestConfigs): Promise<string> => {
  write(join(folder, `${kind}.yaml`), honestConfigs[kind])
  const { stdout, stderr } = await effect(["run", `${kind}.yaml`, "--json"], folder)
  if (stdout === "") throw new Error(stderr)
  return String(JSON.parse(stdout).runDir)
}

/** Replaces the config of a run, and writes a program `evil` into the working directory that leaves the mark. */
export const makeHostile = (folder: string, run: string, config: string): void => {
  write(join(folder, run, "config.yaml"), config)
  write(join(folder, "evil"), `#!/bin/sh\ntouch ${markIn(folder)}\n`, 0o755)
}

const write = (path: string, text: string, mode = 0o644): void => writeFileSync(path, text, { mode })
