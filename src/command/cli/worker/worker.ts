/** Defines the subcommand `effect worker`, which makes this machine do jobs of a cluster. */
import { availableParallelism } from "node:os"
import { Effect, Option } from "effect"
import * as Flag from "effect/cli/Flag"
import { processName } from "../../../spread/cluster/network-node.ts"
import { watchModules } from "../../../spread/cluster/sent/loadedModules-node.ts"
import { platform } from "../../../node.ts"
import { allowAll, Trust } from "../../../base/trust/Trust.ts"
import { number, subcommand, text, toggle } from "../flags.ts"
import { usageError, writeOut } from "../output/output.ts"
import { sweepHandler } from "../../sweep/job.ts"
import { clusterModule, say } from "./cluster.ts"
import { placementHandlers } from "./placement.ts"
import { handlersOfTrainings } from "./sentTraining.ts"

export const worker = subcommand(
  "worker",
  {
    description:
      "Add this machine to a cluster: do the jobs of effect eval --cluster and effect run --cluster, until Ctrl-C, which " +
      "hands unfinished jobs to the other workers; npx passes Ctrl-C on, but not kill: end the process whose number the " +
      "first line has. All machines need the same version of this package, the same files " +
      "at the same paths, and, for sweeps, multi-run trainers and large policies, the same results folder. Anyone who can use the database can run programs " +
      "on this machine.",
    examples: {
      "effect worker --join postgres://rl:secret@db/rl": "Do jobs, one per core at a time",
      "effect worker --join postgres://rl:secret@db/rl --slots 64": "Do more at a time, if they only wait for models",
      "effect worker --join postgres://rl:secret@db/rl --list": "Show who works on what, without joining",
      "effect worker --join postgres://rl:secret@db/rl --prune 7":
        "Remove what is left in the database of runs that were not resumed for a week",
    },
  },
  {
    join: Flag.String("join").pipe(
      Flag.withMetavar("postgres://…"),
      Flag.withDescription(
        "The address of the cluster's database: postgres://user:password@host/db. Without a password in it, that of the environment variable PGPASSWORD is taken",
      ),
    ),
    slots: number("slots", "jobs", "How many jobs to do at a time (default: one per core)"),
    address: text(
      "address",
      "host:port",
      "Where the other workers reach this one (default: the address by which this machine reaches the database, and a free port)",
    ),
    list: toggle("list", "Print the processes of the cluster, their jobs and its queue, and do not join it"),
    prune: number(
      "prune",
      "days",
      "Remove the jobs and answers of which nothing was heard for so many days, and do not join (workers do it after 30 days)",
    ),
    quiet: toggle("quiet", "Print only problems with the cluster, not each job"),
  },
  Effect.fnUntraced(function* (input) {
    if (input.list) return yield* listMembers(input.join)
    if (Option.isSome(input.prune)) return yield* pruneJobs(input.join, input.prune.value)
    const slots = Option.getOrElse(input.slots, () => Math.max(1, availableParallelism()))
    const address = Option.isNone(input.address) ? undefined : yield* parseAddress(input.address.value)
    watchModules()
    const { worker } = yield* clusterModule
    const { evaluationHandler } = yield* Effect.promise(() => import("../../../agents/evaluate/worker.ts"))
    yield* Effect.gen(function* () {
      const handlers = [
        yield* evaluationHandler,
        yield* sweepHandler,
        ...(yield* placementHandlers(processName())),
        ...(yield* handlersOfTrainings),
      ]
      return yield* worker({ url: input.join, say, quiet: input.quiet, slots, address, handlers })
      // A worker already runs code of everybody who can write to the cluster's database, so configs add no risk.
    }).pipe(Effect.scoped, Effect.provide(platform), Effect.provideService(Trust, allowAll))
  }),
)

/** Prints one line for each process of the cluster, for each job in progress, and for each kind of job. */
const listMembers = Effect.fnUntraced(function* (url: string) {
  const { look } = yield* clusterModule
  const { members, kinds } = yield* look({ url, say })
  const processes = members.flatMap(({ role, name, version, slots, jobs, busy, finished }) => {
    const does = role === "worker" ? `${busy} of ${slots} slots busy` : `waits for ${busy} jobs`
    const own = role === "worker" ? jobs.map(({ key, seconds }) => `  ${key} for ${seconds.toFixed(1)} s`) : []
    return [`${role} ${name}: ${does}, ${finished} jobs done, version ${version}`, ...own]
  })
  const queue = kinds.map(
    ({ kind, waiting, underWay, done, failed }) =>
      `jobs ${kind}: ${waiting} waiting, ${underWay} under way, ${done} done, ${failed} failed`,
  )
  const lines = [...(processes.length === 0 ? ["nobody has joined"] : processes), ...queue]
  yield* writeOut(`${lines.join("\n")}\n`)
}, Effect.scoped)

/** Removes old jobs, and prints their number. */
const pruneJobs = Effect.fnUntraced(function* (url: string, days: number) {
  const { removeOld } = yield* clusterModule
  const count = yield* removeOld({ url, say, days })
  yield* writeOut(`removed ${count} jobs\n`)
}, Effect.scoped)

const parseAddress = (text: string) => {
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? []
  return host === undefined || Number(port) > 65535 || Number(port) === 0
    ? Effect.fail(usageError(`--address ${text}: expected host:port`))
    : Effect.succeed({ host, port: Number(port) })
}
