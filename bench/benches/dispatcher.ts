import { readdirSync, readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Exit, Fiber, Layer, Schema, Scope } from "effect"
import * as Cluster from "../../src/spread/cluster/cluster-node.ts"
import * as Dispatcher from "../../src/spread/cluster/Dispatcher.ts"
import { hasPostgres, startPostgres } from "../../test/spread/cluster/postgres.ts"
import { defineBench } from "../Bench.ts"

/** A job that takes no time, so that only its way is measured. */
const nothing = Dispatcher.job({
  name: "nothing",
  payload: Schema.Struct({ index: Schema.Int, run: Schema.String }),
  result: Schema.Int,
  failure: Schema.Never,
  key: ({ run, index }) => `${run} ${index}`,
})

const jobs = (run: string, count: number, concurrency: number) =>
  Effect.gen(function* () {
    const dispatcher = yield* Dispatcher.Dispatcher
    const indices = Array.from({ length: count }, (_, index) => index)
    yield* Effect.forEach(indices, (index) => dispatcher.run(nothing, { run, index }, Effect.succeed(index)), {
      concurrency,
      discard: true,
    })
  })

/** The CPU time in seconds of all processes of the database. The clock of `/proc` ticks a hundred times a second. */
const cpuOfPostgres = (port: string): number => {
  const statsOf = (pid: string): ReadonlyArray<string> => {
    try {
      return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ")
    } catch {
      return []
    }
  }
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  const parent = pids.find((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`-p\0${port}\0`)
    } catch {
      return false
    }
  })
  let ticks = 0
  for (const pid of pids) {
    const stats = statsOf(pid)
    // The time of sessions that have ended belongs to the parent: fields 16 and 17.
    if (pid === parent) ticks += [11, 12, 13, 14].reduce((sum, field) => sum + Number(stats[field]), 0)
    else if (stats[1] === parent) ticks += Number(stats[11]) + Number(stats[12])
  }
  return ticks / 100
}

const cpuOfThis = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

const perJob = 10_000
const say = () => Effect.void

export default [
  defineBench({
    name: "dispatcher-embedded",
    unit: "µs/job",
    higherIsBetter: false,
    about: "What the dispatcher adds to a job in the same process",
    run: async ({ timeAsync }) => {
      const bare = Effect.forEach(Array.from({ length: perJob }), () => Effect.succeed(1), { discard: true })
      const dispatched = await timeAsync(() => Effect.runPromise(jobs("bench", perJob, 1)))
      const without = await timeAsync(() => Effect.runPromise(bare))
      const bounded = await timeAsync(() =>
        Effect.runPromise(Effect.provide(jobs("bench", perJob, 64), Dispatcher.layerEmbedded({ concurrency: 8 }))),
      )
      const micros = (seconds: number): number => (seconds / perJob) * 1e6
      return {
        value: micros(dispatched.seconds - without.seconds),
        details: { "a job of 64 at once, 8 slots": micros(bounded.seconds) },
      }
    },
  }),
  defineBench({
    name: "dispatcher-cluster",
    unit: "jobs/s",
    higherIsBetter: true,
    about: "Empty jobs over Postgres, with one worker of 16 slots and the client in one process",
    run: async () => {
      if (!hasPostgres) throw new Error("postgresql is not installed here")
      const postgres = await startPostgres()
      const port = new URL(postgres.url).port
      const scope = Effect.runSync(Scope.make())
      try {
        const handlers = [Dispatcher.handler(nothing, ({ index }) => Effect.succeed(index))]
        const options = { url: postgres.url, say, handlers, slots: 16, quiet: true, address: undefined }
        const worker = Effect.runFork(Effect.scoped(Cluster.worker(options)))
        const client = await Effect.runPromise(Layer.buildWithScope(Cluster.layer({ url: postgres.url, say }), scope))
        const run = async (name: string, count: number, concurrency: number) => {
          const [before, beforeHere, started] = [cpuOfPostgres(port), cpuOfThis(), performance.now()]
          await Effect.runPromise(Effect.provideContext(jobs(name, count, concurrency), client))
          const seconds = (performance.now() - started) / 1000
          return { seconds, here: cpuOfThis() - beforeHere, database: cpuOfPostgres(port) - before }
        }
        await run("warm up", 50, 16)
        const single = await run("one at a time", 20, 1)
        const many = await run("many", 600, 64)
        const [before, beforeHere] = [cpuOfPostgres(port), cpuOfThis()]
        const idleSeconds = 10
        await sleep(idleSeconds * 1000)
        const idle = { database: cpuOfPostgres(port) - before, here: cpuOfThis() - beforeHere }
        await Effect.runPromise(Fiber.interrupt(worker))
        return {
          value: 600 / many.seconds,
          details: {
            "ms/job, one at a time": (single.seconds / 20) * 1000,
            "CPU ms/job of worker and client": (many.here / 600) * 1000,
            "CPU ms/job of Postgres": (many.database / 600) * 1000,
            "CPU ms/s idle, worker and client": (idle.here / idleSeconds) * 1000,
            "CPU ms/s idle, Postgres": (idle.database / idleSeconds) * 1000,
          },
        }
      } finally {
        await Effect.runPromise(Scope.close(scope, Exit.void))
        await postgres.remove()
      }
    },
  }),
]
