import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { stream } from "../../src/base/rng/Rng.ts"
import { runsIn, scoresOf } from "../command/cli/crash.ts"
import { resultOf, root, start, write } from "../command/cli/effect.ts"
import { must, type Proof } from "./Proof.ts"

/** Machine code replaces the programs of trainings, which are killed around that moment. */

const kills = Number(process.env.PROVE_KILLS ?? 30)

/** A training that is long enough for machine code to replace its programs, and to be killed some times. */
const config = (seed: number): string =>
  [
    "env: Pendulum-v1",
    "algorithm: { name: ppo, nsteps: 64 }",
    "num_envs: 4",
    "total_steps: 2000000",
    "checkpoint: { every_steps: 20000 }",
    `seed: ${seed}`,
    "",
  ].join("\n")

/** The lines of `run.log` before machine code is compiled, and after it has replaced a program. */
const phases = { compiling: / until machine code of .+ is ready/g, replaced: / from here on, after \d+ runs on wasm/g }
type Phase = keyof typeof phases

const count = (results: string, phase: Phase): number =>
  runsIn(results).reduce((sum, run) => {
    const file = join(run, "run.log")
    return sum + (existsSync(file) ? (readFileSync(file, "utf8").match(phases[phase])?.length ?? 0) : 0)
  }, 0)

/** Lists the processes whose environment has this text. */
const processesWith = (text: string): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(text)
    } catch {
      return false
    }
  })

/** Waits until no process of a killed training is left: neither compilers, nor checks of what they made. */
const noneLeft = async (caches: string): Promise<void> => {
  const until = Date.now() + 10_000
  while (processesWith(caches).length > 0 && Date.now() < until) await sleep(20)
  const left = processesWith(caches)
  must(left.length === 0, `10 s after a kill, these processes are left: ${left.join(", ")}`)
}

interface Folders {
  readonly file: string
  readonly results: string
  readonly caches: string
}

const begin = ({ caches, file, results }: Folders, backend: "native" | "wasm") => {
  const [run] = runsIn(results)
  const args = ["run", file, "--backend", backend, "--results-dir", results, "--json", "--quiet"]
  const env = { ...process.env, EFFECT_RL_NATIVE: "1", XDG_CACHE_HOME: caches }
  return start(run === undefined ? args : [...args, "--resume", run], root, { env })
}

const finish = async (folders: Folders, backend: "native" | "wasm") => {
  const outcome = await begin(folders, backend).ended
  must(outcome.code === 0, outcome.stderr)
  const { digest, runDir } = resultOf(outcome)
  return { digest, scores: JSON.stringify(scoresOf(runDir)) }
}

/** Starts or resumes a training, and kills it after a phase has begun. Returns whether it was killed before its end. */
const killed = async (folders: Folders, { phase, milliseconds }: { phase: Phase; milliseconds: number }) => {
  const before = count(folders.results, phase)
  const { child, ended } = begin(folders, "native")
  let isOver = false
  void ended.then(() => (isOver = true))
  while (!isOver && count(folders.results, phase) === before) await sleep(2)
  await Promise.race([ended, sleep(milliseconds)])
  child.kill("SIGKILL")
  const { code, signal, stderr } = await ended
  must(signal === "SIGKILL" || code === 0, stderr)
  await noneLeft(folders.caches)
  return signal === "SIGKILL"
}

/** Short trainings that together use most kinds of ops, some of which threads divide. */
const trainings: Readonly<Record<string, string>> = {
  PPO: "env: CartPole-v1\nalgorithm: { name: ppo, nsteps: 64, minibatches: 2, epochs: 2 }\nnum_envs: 64\ntotal_steps: 16384\n",
  "PPO with an LSTM":
    "env: CartPole-v1\nalgorithm: { name: ppo, nsteps: 32, lstm: 32, epochs: 2, minibatches: 2 }\nnum_envs: 32\ntotal_steps: 4096\n",
  "PPO with convolutions":
    "env: MinAtar/Breakout-v1\nalgorithm: { name: ppo, nsteps: 16, epochs: 1, minibatches: 1 }\nnum_envs: 16\ntotal_steps: 1024\n",
  SAC: "env: Pendulum-v1\nalgorithm: { name: sac, learning_starts: 100, batch_size: 64 }\nnum_envs: 1\ntotal_steps: 400\n",
}

const widths = ["128", "256", "512"]
const threadCounts = ["1", "2", "4"]

export const native: ReadonlyArray<Proof> = [
  {
    name: "native-bits",
    claim: `trainings by ${Object.keys(trainings).join(", ")} on native, with vectors of ${widths.join(", ")} bits and ${threadCounts.join(", ")} threads: the digests and scores of wasm`,
    run: async (folder) => {
      const digests: Array<string> = []
      for (const [name, text] of Object.entries(trainings)) {
        const file = write(folder, "train.yaml", text)
        const train = async (backend: string, bits: string, threads: string) => {
          const results = join(folder, [...digests, backend, bits, threads].join("-"))
          const args = ["run", file, "--backend", backend, "--threads", threads, "--results-dir", results]
          const variables = { EFFECT_RL_NATIVE: "wait", EFFECT_RL_NATIVE_BITS: bits, XDG_CACHE_HOME: folder }
          const outcome = await start([...args, "--json", "--quiet"], root, { env: { ...process.env, ...variables } })
            .ended
          must(outcome.code === 0, outcome.stderr)
          const { digest, runDir } = resultOf(outcome)
          return { digest, scores: JSON.stringify(scoresOf(runDir)) }
        }
        const expected = await train("wasm", "512", "1")
        for (const bits of widths)
          for (const threads of threadCounts) {
            const { digest, scores } = await train("native", bits, threads)
            const what = `${name}, ${bits} bits, ${threads} threads`
            must(digest === expected.digest, `${what}: digest ${digest}, on wasm ${expected.digest}`)
            must(scores === expected.scores, `${what}: other scores`)
          }
        digests.push(expected.digest.slice(0, 16))
      }
      const count = digests.length * widths.length * threadCounts.length
      return `${count} trainings, digests ${digests.join(", ")}`
    },
  },
  {
    name: "native-crash",
    claim: `trainings whose programs machine code replaces, killed with kill -9 at ${kills} random moments while it is compiled, checked and taken into use, and resumed each time: the digests and scores of WebAssembly alone, and no process is left`,
    run: async (folder) => {
      const random = stream(36, "prove", "native")
      const caches = join(folder, "caches")
      const at = { compiling: 0, replaced: 0 }
      let begun = 0
      while (at.compiling + at.replaced < kills) {
        const seed = ++begun
        const file = write(folder, `train-${seed}.yaml`, config(seed))
        const expected = await finish({ file, caches, results: join(folder, `wasm-${seed}`) }, "wasm")
        const folders = { file, caches, results: join(folder, `native-${seed}`) }
        let isKilled = true
        while (isKilled && at.compiling + at.replaced < kills) {
          // Half of all kills come after the swap, sometimes to machine code that an earlier process has compiled.
          const phase = at.replaced < at.compiling ? "replaced" : "compiling"
          const isFresh = phase === "compiling" || random.integer(2) > 0
          if (isFresh) rmSync(join(caches, "effect-rl/native"), { recursive: true, force: true })
          isKilled = await killed(folders, { phase, milliseconds: random.integer(phase === "compiling" ? 3000 : 300) })
          if (isKilled) at[phase]++
        }
        const { digest, scores } = await finish(folders, "native")
        must(digest === expected.digest, `seed ${seed}: digest ${digest}, without kills ${expected.digest}`)
        must(scores === expected.scores, `seed ${seed}: other scores`)
        await noneLeft(caches)
        must(
          begun < 2 * kills,
          "trainings end before machine code replaces their programs: use a machine with less work",
        )
      }
      return `${at.compiling} kills while machine code was made, ${at.replaced} after it was in use, in ${begun} trainings`
    },
  },
]
