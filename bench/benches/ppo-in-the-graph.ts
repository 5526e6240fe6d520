/**
 * Measures PPO with rollouts in the graph against rollouts in JavaScript, with thousands of envs. The two alternate, and
 * are compared by CPU time, which other load on the machine changes least. `EFFECT_RL_BENCH_BACKEND` chooses the backend;
 * on a GPU, compare the steps per second instead, since the CPU then mostly waits. Those are of the training alone: its start, in
 * which programs are compiled, would take most of the time of so few updates.
 */
import { CartPole, Ppo } from "effect-rl"
import { chosenBackend } from "../chosenBackend.ts"
import { defineBench } from "../Bench.ts"
import { trainOnce } from "../training.ts"

const nsteps = 32
const rounds = 3

const settings = { nsteps, epochs: 2, minibatches: 16, hidden: [64, 64], learningRate: 2e-3 }

const bench = (numEnvs: number, iterations: number) =>
  defineBench({
    name: `ppo-graph-${numEnvs}`,
    unit: "steps/s",
    higherIsBetter: true,
    about: `PPO on CartPole with ${numEnvs.toLocaleString("en")} envs × ${nsteps} steps, rollouts in the graph, 2 epochs of 16 minibatches, 64-64`,
    run: async () => {
      const backend = chosenBackend("cpu")
      const totalSteps = iterations * numEnvs * nsteps
      const train = async (rollouts: "envs" | "graph") => {
        const before = process.cpuUsage()
        const { stepsPerSecond } = await trainOnce(
          { env: CartPole.env, numEnvs, algorithm: Ppo.make({ ...settings, rollouts }), totalSteps },
          backend,
        )
        const { user, system } = process.cpuUsage(before)
        return { stepsPerSecond, cpuSeconds: (user + system) / 1e6 }
      }
      const pairs: Array<{
        readonly graph: Awaited<ReturnType<typeof train>>
        readonly envs: Awaited<ReturnType<typeof train>>
      }> = []
      for (let round = 0; round < rounds; round++)
        pairs.push({ graph: await train("graph"), envs: await train("envs") })
      const median = (of: (pair: (typeof pairs)[number]) => number): number =>
        pairs.map(of).sort((a, b) => a - b)[Math.floor(rounds / 2)]
      return {
        value: median(({ graph }) => graph.stepsPerSecond),
        details: {
          backend,
          "rollouts in JavaScript, steps/s": median(({ envs }) => envs.stepsPerSecond),
          "CPU seconds": median(({ graph }) => graph.cpuSeconds),
          "share of the CPU time of rollouts in JavaScript": median(
            ({ graph, envs }) => graph.cpuSeconds / envs.cpuSeconds,
          ),
          "peak MB": Math.round(process.resourceUsage().maxRSS / 1024),
        },
      }
    },
  })

export default [bench(4096, 8), bench(65_536, 2)]
