import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { assert } from "vitest"
import { effect, resultOf, write } from "../../../command/cli/effect.ts"

/** Policies of every kind that a worker must hold, as short trainings. */
export const trainings = {
  ppo: "env: CartPole.env, algorithm: Ppo.make({ nsteps: 128 }), normalize: { observations: true }",
  "ppo-continuous": "env: Pendulum.env, algorithm: Ppo.make({ nsteps: 128 }), normalize: { observations: true }",
  lstm: "env: CartPole.env, algorithm: Ppo.make({ nsteps: 32, lstm: 16 })",
  sac: "env: Pendulum.env, algorithm: Sac.make({ hidden: [32, 32], learningStarts: 256 })",
  dqn: "env: Breakout.env, algorithm: Dqn.make({ hidden: [32], learningStarts: 256 })",
} as const

export type Kind = keyof typeof trainings

/** Each policy plays so many episodes, which have at least 1,000 steps together. */
const episodesOf: Readonly<Record<Kind, number>> = { ppo: 60, "ppo-continuous": 5, lstm: 60, sac: 5, dqn: 120 }

export interface Played {
  readonly observation: ReadonlyArray<number>
  /** The action that the policy chose in Node: one number for each element. */
  readonly action: ReadonlyArray<number>
}

export interface Exported {
  /** The folder that `effect export RUN --to worker` wrote. */
  readonly folder: string
  readonly run: string
  /** Episodes that the policy played in Node, of at least 1,000 steps together. */
  readonly episodes: ReadonlyArray<ReadonlyArray<Played>>
}

/** Trains a policy in `folder`, lets it play in Node, and exports it as a worker. */
export const exported = async (folder: string, kind: Kind): Promise<Exported> => {
  const file = write(
    folder,
    `${kind}.ts`,
    `import { Breakout, CartPole, Dqn, Pendulum, Ppo, Sac, Train } from "effect-rl"
export default Train.run({ ${trainings[kind]}, numEnvs: 4, totalSteps: 1024,
  validation: { everySteps: 1024, episodes: 1 }, render: { everySteps: 1024, episodes: ${episodesOf[kind]} } })\n`,
  )
  const results = join(folder, `${kind}-results`)
  const done = await effect(["run", file, "--results-dir", results, "--backend", "wasm", "--quiet", "--json"])
  assert.strictEqual(done.code, 0, done.stderr)
  const run = resultOf(done).runDir
  const out = join(folder, `${kind}-worker`)
  const written = await effect(["export", run, "--to", "worker", "--out", out])
  assert.strictEqual(written.code, 0, written.stderr)
  assert.strictEqual(written.stdout, `${out}\n`)
  const [step] = readdirSync(join(run, "steps"))
  const saved: ReadonlyArray<{ readonly trajectory: ReadonlyArray<Played> }> = JSON.parse(
    gunzipSync(readFileSync(join(run, "steps", step, "trajectories.json.gz"))).toString(),
  )
  const episodes = saved.map(({ trajectory }) => trajectory)
  assert.isAtLeast(episodes.flat().length, 1000)
  return { folder: out, run, episodes }
}
