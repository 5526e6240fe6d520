import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { type Stream, stream } from "../../src/base/rng/Rng.ts"
import { runsIn } from "../command/cli/crash.ts"
import { type Outcome, program, resultOf, start, write } from "../command/cli/effect.ts"
import { type Machine, makeNetwork, type Network, whyNoNetwork } from "../spread/cluster/network.ts"
import { hasPostgres, type Postgres, startPostgres } from "../spread/cluster/postgres.ts"
import { contentOf, lastCheckpointOnly, type Worker, watched } from "../spread/cluster/workers.ts"
import { type HttpServer, startHttp } from "../servers/listen.ts"
import { must, type Proof } from "./Proof.ts"

/** Proofs of clusters, on machines that are network namespaces. They need Linux, root and Postgres. */

/** A model behind HTTP that thinks for a while. Its answer depends on the question alone. */
const slowModel = (host: string, milliseconds: number): Promise<HttpServer> =>
  startHttp((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (text: string) => (body += text))
    request.on("end", () => {
      const { messages } = JSON.parse(body)
      const content = "ABC"[stream(1, JSON.stringify(messages)).integer(3)]
      const choice = { index: 0, message: { role: "assistant", content }, finish_reason: "stop" }
      const usage = { prompt_tokens: body.length, completion_tokens: 1 }
      setTimeout(() => response.end(JSON.stringify({ id: "1", model: "slow", choices: [choice], usage })), milliseconds)
    })
  }, host)

/** An evaluation of `tasks` episodes whose agent asks that model. */
const tasks = (count: number, url: string, workers: number): string => `
name: words
seed: 4
dataset: { type: codebook, num_tasks: ${count} }
agent:
  type: memoryless_agent
  lm_config: { model: "vllm:slow", base_url: "${url}/v1", timeout_s: 60, max_retries: 50, max_delay: 2, log_calls: false }
scorers: [score, tokens]
workers: ${workers}
`

/** A training of an agent without a memory, which asks that model, with validations before, in the middle and after. */
const training = (episodes: number, url: string): string => `
kind: agents
agent:
  type: memoryless_agent
  lm_config: { model: "vllm:slow", base_url: "${url}/v1", timeout_s: 60, max_retries: 50, max_delay: 2 }
train_dataset: { type: codebook, num_tasks: ${episodes} }
validation_dataset: { type: codebook, num_tasks: 70, seed: 2 }
runtime: { validation_freq: ${episodes / 2}, run_validation_at_start: true, validation_num_workers: 4, num_parallel_episodes: 4 }
output: { save_rollouts: true }
`

/** The machines, the database and the model of a proof. */
interface World {
  readonly network: Network
  readonly postgres: Postgres
  readonly model: HttpServer
}

const withWorld = async (machines: number, body: (world: World) => Promise<string>): Promise<string> => {
  const missing = hasPostgres ? whyNoNetwork() : "postgresql is not installed here"
  if (missing !== undefined) return `SKIPPED, because it can't be tried here: ${missing}`
  const network = makeNetwork(machines)
  try {
    const postgres = await startPostgres(network.host)
    const model = await slowModel(network.host, 300)
    try {
      return await body({ network, postgres, model })
    } finally {
      await model.close()
      await postgres.remove()
    }
  } finally {
    network.remove()
  }
}

/** A worker on a machine, which can be killed, frozen and cut off, together with the processes that it started. */
class Place {
  worker: Worker
  readonly #machine: Machine
  readonly #begin: () => Worker
  isBusy = false

  constructor(machine: Machine, url: string, folder: string, slots: number) {
    this.#machine = machine
    this.#begin = () => watched(machine.start(["worker", "--join", url, "--slots", String(slots)], folder))
    this.worker = this.#begin()
  }

  signal(name: NodeJS.Signals): void {
    const { pid } = this.worker.child
    try {
      if (pid !== undefined) process.kill(-pid, name)
    } catch {
      // The process has ended.
    }
  }

  /** Does something bad to the machine, and undoes it after some time. */
  async suffer(fault: (typeof faults)[number], milliseconds: number): Promise<void> {
    this.isBusy = true
    if (fault === "killed") this.signal("SIGKILL")
    else if (fault === "frozen") this.signal("SIGSTOP")
    else this.#machine.plug(false)
    await sleep(milliseconds)
    if (fault === "killed") this.worker = this.#begin()
    else if (fault === "frozen") this.signal("SIGCONT")
    else this.#machine.plug(true)
    this.isBusy = false
  }

  async end(): Promise<void> {
    this.signal("SIGCONT")
    this.signal("SIGKILL")
    await this.worker.ended
  }
}

const faults = ["killed", "frozen", "cut off"] as const

/** The number of times that a machine suffers. */
const mostFaults = 30

/** Lets machines suffer at random, and restarts Postgres twice, until that is enough or the work is done. */
const torment = async (places: ReadonlyArray<Place>, postgres: Postgres, random: Stream, isDone: () => boolean) => {
  const counts = { killed: 0, frozen: 0, "cut off": 0, restarts: 0 }
  const suffering: Array<Promise<void>> = []
  for (let turn = 1; !isDone() && counts.killed + counts.frozen + counts["cut off"] < mostFaults; turn++) {
    await sleep(1500 + random.integer(2000))
    if (isDone()) break
    if (turn === 8 || turn === 20) {
      await postgres.halt()
      await sleep(3000)
      await postgres.resume()
      counts.restarts++
    }
    const well = places.filter(({ isBusy }) => !isBusy)
    if (well.length === 0) continue
    const fault = faults[random.integer(3)]
    counts[fault]++
    suffering.push(well[random.integer(well.length)].suffer(fault, 500 + random.integer(9000)))
  }
  await Promise.all(suffering)
  return counts
}

const succeeded = (outcome: Outcome): Outcome => {
  must(outcome.code === 0, outcome.stderr)
  return outcome
}

const digestsOf = ({ stdout }: Outcome): string => (stdout.match(/"digest":"[0-9a-f]{64}"/g) ?? []).join()

export const cluster: ReadonlyArray<Proof> = [
  {
    name: "cluster",
    claim:
      "a sweep of 12 runs, an evaluation of 5,000 episodes and the training of an agent with 100 episodes and 210 of validations on three machines that are killed, frozen and cut off 30 times, while Postgres is restarted twice: the files and digests of one machine",
    run: (folder) =>
      withWorld(3, async ({ network, postgres, model }) => {
        const file = write(
          folder,
          "train.ts",
          program(`validation: { everySteps: 1024, episodes: 5 }, ${lastCheckpointOnly}`),
        )
        write(folder, "tasks.yaml", tasks(5000, model.url, 2))
        const sweep = (results: string) => {
          const place = ["--results-dir", join(folder, results, "sweep")]
          return ["run", file, "--seeds", "1..12", "--total-steps", "20480", ...place, "--json", "--quiet"]
        }
        const evaluation = (results: string) => {
          return ["eval", "tasks.yaml", "--results-dir", join(folder, results, "eval"), "--json", "--quiet"]
        }
        write(folder, "agent.yaml", training(100, model.url))
        const agent = (results: string) => {
          return ["run", "agent.yaml", "--results-dir", join(folder, results, "agent"), "--json", "--quiet"]
        }
        const trainedAlone = succeeded(await start(agent("alone"), folder).ended)
        const evaluatedAlone = succeeded(await start([...evaluation("alone"), "--set", "workers=200"], folder).ended)
        const sweptAlone = succeeded(await start(sweep("alone"), folder).ended)

        const places = network.machines.map((machine) => new Place(machine, postgres.url, folder, 2))
        try {
          await Promise.all(places.map(({ worker }) => worker.says(/joined/)))
          const spread = ["--cluster", postgres.url]
          let isDone = false
          const working = Promise.all([
            start([...evaluation("spread"), ...spread], folder).ended,
            start([...sweep("spread"), ...spread], folder).ended,
            start([...agent("spread"), ...spread], folder).ended,
          ])
          void working.then(() => (isDone = true))
          const counts = await torment(places, postgres, stream(13, "prove", "cluster"), () => isDone)
          const [evaluated, swept, trained] = (await working).map(succeeded)
          must(resultOf(evaluated).digest === resultOf(evaluatedAlone).digest, "the evaluation has another digest")
          must(resultOf(evaluated).episodes === 5000, "episodes are missing")
          must(resultOf(trained).digest === resultOf(trainedAlone).digest, "the agent's training has another digest")
          must(digestsOf(swept) === digestsOf(sweptAlone), "a run of the sweep has another digest")
          for (const [part, runs] of Object.entries({ sweep: 12, eval: 1, agent: 1 })) {
            const [here, there] = ["alone", "spread"].map((results) => runsIn(join(folder, results, part)).toSorted())
            must(there.length === runs, `${there.length} runs of ${part}, not ${runs}`)
            for (const [at, run] of here.entries()) {
              const [one, other] = [contentOf(run), contentOf(there[at])]
              const different = Object.keys({ ...one, ...other }).filter((path) => one[path] !== other[path])
              // Each machine writes the number of processes that the client chose into its config.
              const wrong = different.filter((path) => part !== "eval" || !path.startsWith("config."))
              must(wrong.length === 0, `${there[at]}: ${wrong.join(", ")} differ`)
            }
          }
          const total = counts.killed + counts.frozen + counts["cut off"]
          must(total === mostFaults && counts.restarts === 2, `only ${total} faults and ${counts.restarts} restarts`)
          return `killed ${counts.killed} times, frozen ${counts.frozen}, cut off ${counts["cut off"]}, Postgres restarted ${counts.restarts} times: digest ${String(resultOf(evaluated).digest).slice(0, 16)}, and 13 equal digests of runs`
        } finally {
          await Promise.all(places.map((place) => place.end()))
        }
      }),
  },
  {
    name: "cluster-speed",
    claim:
      "an evaluation of 400 episodes that wait for a model for 0.3 s, four jobs at once on each machine: the time falls with the number of machines",
    run: (folder) =>
      withWorld(4, async ({ network, postgres, model }) => {
        write(folder, "tasks.yaml", tasks(400, model.url, 1))
        const seconds: Array<number> = []
        const places: Array<Place> = []
        try {
          for (const machine of network.machines) {
            const place = new Place(machine, postgres.url, folder, 4)
            places.push(place)
            await place.worker.says(/joined/)
            const words = ["eval", "tasks.yaml", "--results-dir", join(folder, `${places.length}`), "--json", "--quiet"]
            const evaluated = succeeded(await start([...words, "--cluster", postgres.url], folder).ended)
            seconds.push(Number(resultOf(evaluated).wallSeconds))
          }
        } finally {
          await Promise.all(places.map((place) => place.end()))
        }
        must(seconds[3] < seconds[0] / 1.5, `seconds ${seconds.join(", ")}`)
        return `seconds with 1 to 4 machines: ${seconds.map((value) => value.toFixed(1)).join(", ")}`
      }),
  },
]
